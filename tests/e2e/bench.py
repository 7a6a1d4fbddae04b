"""A bench for the cases of a test: a folder, a database and the commands of sweep; and what plays the cases, each on a bench of its own."""
import json
import pathlib
import subprocess
import sys
import tempfile


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
