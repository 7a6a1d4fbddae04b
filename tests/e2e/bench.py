"""A bench for the cases of a test: a folder, a database and the commands of sweep; and what plays the cases, each on a bench of its own."""
import json
import pathlib
import subprocess
import sys
import tempfile

import database


class Skipped(Exception):
    """Why a case could not be set up here."""


class Bench:
    def __init__(self, bin_dir, folder):
        self.bin, self.folder, self.db = bin_dir, folder, folder / "r.db"

    def words(self, *words):
        return [str(self.bin / "sweep"), *map(str, words)]

    def sweep(self, *words, code=0, given="", **more):
        """A command that reads `given` and ends with this exit code."""
        done = subprocess.run(self.words(*words), input=given, capture_output=True, text=True, timeout=300, cwd=self.folder, **more)
        assert done.returncode == code, f"{words}: exit {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
        assert "internal fault" not in done.stderr, done.stderr
        return done


class PlayedBench(Bench):
    """For grids whose ranks play step times and memory (tests/support/fake_trial.h); NAME in their text becomes the sweep's name."""
    options: tuple[str, ...] = ()  # of every run

    def __init__(self, bin_dir, folder, rank):
        super().__init__(bin_dir, folder)
        self.rank = rank

    def sweep(self, *words, **more):
        """All that it says."""
        done = super().sweep(*words, **more)
        return done.stdout + done.stderr

    def grid(self, text, name):
        path = self.folder / f"{name}.yaml"
        path.write_text(text.replace("NAME", name))
        return path

    def run_words(self, text, name, *more):
        return ["run", self.grid(text, name), "--db", self.db, "--on", "local", "--rank", self.rank, *self.options, *more]

    def run(self, text, name, *more):
        return self.sweep(*self.run_words(text, name, *more))

    def rows(self, sql):
        return database.rows(self.db, sql)


def store(bin_dir, db, name, rows, question="Which?", facts=None):
    """Stores these rows as a sweep of a database, without running anything; facts: those of the nodes."""
    lines, file = db.with_suffix(".jsonl"), db.with_suffix(".facts.json")
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    file.write_text(json.dumps(facts))
    subprocess.run([bin_dir / "result_db", db, name, question, lines, *([file] if facts is not None else [])], check=True, timeout=60)


def play(cases, bench=Bench, own=()):
    """Plays the cases on `bench(BIN, its folder, *own)`. The command line begins with BIN and the words of `own`; further words choose
    cases. Ends the program: with 77 if a case was skipped."""
    skipped, only = 0, sys.argv[2 + len(own):]
    for case in cases:
        if only and case.__name__ not in only:
            continue
        with tempfile.TemporaryDirectory(prefix="sweep-test-") as folder:
            try:
                case(bench(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder), *own))
                print("ok      ", case.__name__, flush=True)
            except Skipped as why:
                print("skipped ", case.__name__, "-", why, flush=True)
                skipped = 77
    sys.exit(skipped)
