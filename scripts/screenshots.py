#!/usr/bin/env python3
"""screenshots.py OUT [--bin DIR] [--only NAME]...: pictures of the pages at 1400, 1000 and 420 pixels, for people who look at them.

Makes four databases in OUT (one that is there is kept): quickstart, published (the 1,631 rows), rehearsal, and slurm (a sweep with
failures on a Slurm of two nodes on this machine), and of each the heatmap, the report and a trial as OUT/NAME-PAGE-WIDTH.png; with the
page as .html beside. A word says what was left out and why: no Slurm here, no phantom GPUs. Needs a headless Chromium.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests" / "e2e"))
import browser  # noqa: E402
import database  # noqa: E402
import slurm_sweep  # noqa: E402
from cluster import slurm  # noqa: E402

WIDTHS = (1400, 1000, 420)
OUTCOMES = "max(0, (3 * seq_len + 5 * nodes) % 11 - 6)"  # half are ok; oom, crash, exception, unsupported (tests/support/fake_trial.cpp)


class Missing(RuntimeError):
    """Why a database cannot be made here."""


class Maker:
    def __init__(self, programs, out):
        self.programs, self.out = programs, out

    def sweep(self, *words, answers=(0, 1)):
        done = subprocess.run([self.programs / "sweep", *map(str, words)], cwd=REPO, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode not in answers:
            raise Missing(done.stderr.strip().split("\n")[-1])
        return done.stdout

    def quickstart(self, db):
        self.sweep("run", "sweeps/quickstart.yaml", "--quiet", "--db", db)

    def published(self, db):
        self.sweep("import", "sweeps/data/playbook_h100_1B_8B.csv", "--db", db)

    def rehearsal(self, db):
        self.sweep("run", "sweeps/zero-memory.yaml", "--rehearse", "--quiet", "--db", db)

    def slurm(self, db):
        lacking = slurm.missing()
        if lacking:
            raise Missing(f"this machine lacks {', '.join(lacking)}")
        with tempfile.TemporaryDirectory(prefix="sweep-pictures-") as root, slurm.Cluster(pathlib.Path(root) / "cluster", nodes=2) as cluster:
            folder = pathlib.Path(root) / "slurm"
            run = slurm_sweep.Sweep(self.programs, self.programs / "fake_rank", cluster, folder, 10, fake=OUTCOMES, step_ms=5, nodes=(1, 2))
            run.run(expected_code=1)
            run.say("backup", str(db))
            (folder / "r.db.spool").rename(f"{db}.spool")

    def pages(self, name, db):
        """Each page, made anew."""
        best, = database.rows(db, "select trial from results where outcome = 'ok' order by tokens_per_s_gpu desc limit 1")
        worst = database.rows(db, "select trial from results where outcome in ('crash', 'oom') order by outcome limit 1")
        wanted = {"heatmap": ["heatmap"], "report": ["report"], "trial": ["explain", best[0]]}
        if worst:
            wanted["failed"] = ["explain", worst[0][0]]
        for page, words in wanted.items():
            file = self.out / f"{name}-{page}.html"
            self.sweep(*words, "--db", db, "-o", file)
            yield file


def pictures(shown, file):
    for width in WIDTHS:
        shown.open(file.as_uri(), width=width)
        picture = file.with_name(f"{file.stem}-{width}.png")
        shown.picture(picture)
        wide = shown.evaluate("document.documentElement.scrollWidth > innerWidth")
        height = shown.evaluate("document.documentElement.scrollHeight")
        print(f"{picture}: {height} pixels high{', WIDER than its window' if wide else ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("quickstart", "published", "rehearsal", "slurm")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=REPO / "build" / "release" / "bin", help="the programs")
    parser.add_argument("--only", action="append", choices=names)
    o = parser.parse_args()
    out = o.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    maker = Maker(o.bin.resolve(), out)
    with browser.page() as shown:
        for name in o.only or names:
            db = out / f"{name}.db"
            try:
                if not db.exists():
                    getattr(maker, name)(db)
                for file in maker.pages(name, db):
                    pictures(shown, file)
            except Missing as why:
                print(f"{name}: left out: {why}", flush=True)
        if shown.problems:
            sys.exit(f"the pages complain: {json.dumps(shown.problems)}")


if __name__ == "__main__":
    main()
