#!/usr/bin/env python3
"""output_test.py BIN: what the command line does when its surroundings fail: a standard output that cannot be written, a
reader that leaves, a database path that is no database, a disk that is full or read-only. Exit 77: a case could not be set
up here; its name and the reason are printed."""
import contextlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys

import bench
import finished_sweep
import schemas

# Every command, and words that make it print data; None: it prints none without a cluster, LibTorch or a browser.
PRINTS = {
    "run": None, "resume": None, "plan": ["GRID"], "explain": ["TRIAL"], "simulate": ["GRID", "--nodes", "1"], "status": [],
    "stop": None, "clean": None, "best": [], "heatmap": None,
    "table": ["batch"], "report": ["-o", "-"], "compare": ["SWEEP", "SWEEP"], "query": ["select 1"], "export": ["csv"],
    "import": None, "merge": None, "confirm": None, "serve": None, "logs": ["TRIAL"], "ingest": None, "doctor": [],
    "selftest": None, "models": [], "hardware": [], "completion": ["bash"], "manual": [],
    "predict": ["--configs", "CONFIGS", "--hardware", "h100-sxm-80gb"],
    "init": ["torchrun", "-o", "-"], "wrap": None, "calibrate": None, "suggest": [], "replay": None,
    "choose": None, "list": ["models"], "backup": None, "delete": None,
}
JSON = ("predict", "suggest", "plan", "explain", "status", "best", "table", "compare", "query", "logs", "doctor", "models", "hardware")
CSV_HEAD = "precision,model,hardware,nodes,gpus_per_node,micro_batch_size,seq_len,tokens_per_s\n"
DB = ["--db", "r.db"]
STAGES = """name: s
model: tiny-llama
base: {hardware: cpu, gpus_per_node: 2, seq_len: 16, global_batch_size: 8, micro_batch_size: 1}
stages: [{start: {}}, {larger batch: {micro_batch_size: 2}}]
measure: {warmup_steps: 1, steps: 5}
"""
NO_DB = ("simulate", "predict", "init", "models", "hardware", "completion", "manual", "list")


class Bench:
    def __init__(self, bin_dir, folder):
        self.bin, self.folder = bin_dir, folder
        self.db = finished_sweep.make(bin_dir, folder)
        said = self.sweep("query", "select trial from results where outcome = 'ok' limit 1", "--csv", "--db", self.db)
        (folder / "configs.csv").write_text("model,nodes,dp,tp\nllama3-8b,1,1,8\n")
        self.names = {"GRID": folder / "grid.yaml", "CONFIGS": folder / "configs.csv", "SWEEP": finished_sweep.NAME, "TRIAL": said.stdout.split()[1]}

    def sweep(self, *words, stdout=subprocess.PIPE, **more):
        return subprocess.run([self.bin / "sweep", *words], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, **{"cwd": self.folder, **more})

    def words(self, name, *more):
        words = [name, *(self.names.get(word, word) for word in PRINTS[name]), *more]
        return words if name in NO_DB else [*words, "--db", self.db]

    def documents_of_other_commands(self):
        rows = self.folder / "rows.csv"
        rows.write_text("model,nodes,dp,tp,pp,mbs,gas,tok_s_gpu\n1B,1,8,1,1,1,4,100\n1B,1,8,1,1,2,2,200\n")
        own = ["--set", "seq_len=4096", "--set", "precision=bf16", "--hardware", "h100-sxm-80gb", "--db", "i.db"]
        for words in (["predict", "--configs", self.names["CONFIGS"]], ["replay", rows], ["choose", self.names["GRID"], "--tokens", "1e9"],
                      ["import", rows, *own], ["suggest", "--db", "i.db"], ["merge", "m.db", "i.db"],
                      ["simulate", self.names["GRID"], "--nodes", "2", "--job-seconds", "900"], ["best", *DB], ["best", "--by", "seq_len", *DB]):
            done = self.sweep(*words, "--json")
            yield tuple(map(str, words)), json.loads(done.stdout)

    def documents_of_runs(self):
        """Of commands that write: in a folder of their own."""
        grid, db = self.folder / "stages.yaml", ["--db", "w.db"]
        grid.write_text(STAGES)
        agent = ["--on", "local", "--rank", self.bin / "fake_rank"]
        for words, code in ((["init", "torchrun", "-o", "first.yaml"], 0), (["init", "torchrun", "-o", "-"], 0), (["run", grid, *db, *agent], 0),
                            (["resume", *db, *agent], 0), (["ingest", *db], 0), (["resume", "--store-only", *db], 0), (["clean", *db], 0), (["clean", "--yes", *db], 0),
                            (["backup", "copy.db", *db], 0), (["delete", "s", "--yes", *db], 0),
                            (["wrap", "--processes", "1", *db, "--rank", self.bin / "fake_rank", "--json", "--", "sh", "-c", "exit 3"], 1)):
            done = self.sweep(*words, *([] if "--json" in words else ["--json"]))
            assert done.returncode == code, (words, done)
            yield tuple(map(str, words)), json.loads(done.stdout)
        yield ("serve",), self.document_of_a_server(self.db)

    def document_of_a_server(self, db):
        with subprocess.Popen([self.bin / "sweep", "serve", "--json", "--db", db], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            lines = [server.stdout.readline()]
            while lines[-1] not in ("}\n", ""):
                lines.append(server.stdout.readline())
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=60)
        return json.loads("".join(lines))

    def documents_of_tables_and_comparisons(self):
        name, kinds = finished_sweep.NAME, ("cost", "batch", "scaling", "max-batch", "max-model", "stages")
        ok = [row["trial"] for row in json.loads(self.sweep("query", "select trial from results", "--json", "--db", self.db).stdout)]
        rows = self.folder / "other.csv"
        rows.write_text(CSV_HEAD + "".join(f"bf16,tiny-llama,h100-sxm-80gb,1,8,{n},4096,{1000 * n}\n" for n in (1, 2)))
        for sweep in "abc":
            self.sweep("import", rows, "--sweep", sweep, "--db", "t.db")
        grid = self.folder / "stages.yaml"
        grid.write_text(STAGES)
        self.sweep("run", grid, "--db", "s.db", "--on", "local", "--rank", self.bin / "fake_rank")
        several = json.loads(self.sweep("compare", "a", "b", "c", "--json", "--db", "t.db").stdout)
        assert [(row["side"], row["sweep"]) for row in several] == [("B", "b")] * 2 + [("C", "c")] * 2, several
        for words in (["query", "select 1 as n, null as none, 'a' as word, 0.5", *DB], ["query", "select * from results", *DB],
                      *(["table", kind, *DB] for kind in kinds), ["table", "max-batch", "--epoch-tokens", "1e6", *DB],
                      ["table", "stages", "--db", "s.db"], ["table", "stages", "--metric", "step_ms", "--db", "s.db"], *(["table", kind, "a", "--db", "t.db"] for kind in kinds),
                      ["compare", name, name, *DB], ["compare", "a", "b", "--metric", "mfu", "--db", "t.db"], ["compare", "a", "b", "c", "--db", "t.db"],
                      ["compare", name, "--trials", ",".join(ok[:3]), *DB], ["compare", "--transfer", "a", "b", "--db", "t.db"],
                      ["compare", "--transfer", name, name, "--by", "nodes", *DB]):
            done = self.sweep(*words, "--json")
            assert done.returncode == 0, (words, done)
            yield tuple(map(str, words)), json.loads(done.stdout)

    def printing(self):
        """Every command line that prints: the help of each command, its data, its data as JSON."""
        for name, words in PRINTS.items():
            yield [name, "--help"]
            if words is not None:
                yield self.words(name)
            if name in JSON:
                yield self.words(name, "--json")


def the_table_above_names_every_command(b):
    listed = re.search(r'compgen -W "([^"]*)--help', b.sweep("completion", "bash").stdout).group(1).split()
    assert sorted(listed) == sorted(PRINTS), f"differing: {set(listed) ^ set(PRINTS)}"


def help_manual_and_documents_name_the_same_exit_codes(b):
    codes = {"0", "1", "2", "3", "4", "130"}
    commands = (pathlib.Path(__file__).resolve().parents[2] / "docs/commands.md").read_text()
    manual = b.sweep("manual").stdout.split(".SH EXIT STATUS")[1]
    assert set(re.findall(r"(?m)^ +(\d+)  \w", b.sweep("--help").stdout)) == codes
    assert set(re.findall(r"(?m)^\.B (\d+)$", manual)) == codes
    assert set(re.findall(r"(?m)^\| `(\d+)` \|", commands)) == codes


def each_document_follows_its_schema(b):
    if not schemas.can_be_checked():
        raise bench.Skipped("the Python package jsonschema is not here (scripts/setup test installs it)")
    rows = json.loads(b.sweep("query", "select trial, outcome from results", "--json", "--db", b.db).stdout)
    trials = {row["outcome"]: row["trial"] for row in rows}
    cases = [("list", DB), ("models", []), ("models", ["tiny-llama"]), ("hardware", []), ("hardware", ["cpu"]), ("doctor", DB), ("status", DB),
             ("logs", [trials["ok"], *DB]), *(("explain", [trials[how], *DB]) for how in ("ok", "oom", "pruned"))]
    seen = {(name, *words): json.loads(b.sweep(name, *words, "--json", cwd=b.folder).stdout) for name, words in cases}
    as_if_it_ran(b.db)
    seen["status", "running"] = json.loads(b.sweep("status", *DB, "--json").stdout)
    for n, line in enumerate(b.sweep("plan", b.names["GRID"], "--json").stdout.splitlines()):
        seen["plan", n] = json.loads(line)
    seen.update(b.documents_of_other_commands())
    seen.update(b.documents_of_runs())
    seen.update(b.documents_of_tables_and_comparisons())
    for (name, *_), document in seen.items():
        schemas.check("ingest" if "stored" in document else {"resume": "run"}.get(name, name), document)
    wrote = {name: document for (name, *_), document in seen.items()}
    assert wrote["run"]["sweep"] == wrote["resume"]["sweep"] == wrote["ingest"]["sweep"] == wrote["delete"]["sweep"] == "s", wrote["run"]
    assert wrote["wrap"]["outcome"] == "crash" and pathlib.Path(wrote["wrap"]["log"]).exists(), wrote["wrap"]
    assert wrote["backup"]["bytes"] == (b.folder / "copy.db").stat().st_size and wrote["delete"]["trials"] == 2, wrote
    assert wrote["init"]["file"] is None and wrote["init"]["grid"].startswith(seen["init", "torchrun", "-o", "first.yaml"]["grid"][:20]), wrote["init"]
    assert wrote["serve"]["sweep"] == finished_sweep.NAME and wrote["serve"]["address"].startswith("http://127.0.0.1:"), wrote["serve"]
    assert {"sweep": finished_sweep.NAME, "kind": "measured", "ok": 2}.items() <= seen["list", *DB][0].items(), seen["list", *DB]
    done, running = seen["status", *DB], seen["status", "running"]
    assert done["outcomes"]["ok"] == 2 and done["outcomes"]["hang"] == 0 and not done["allocations"], done
    assert len(running["allocations"]) == 1 and running["attempts_running"], running
    oom = seen["explain", trials["oom"], *DB]["attempts"][-1]
    assert oom["final"] and oom["result"]["outcome"] == "oom" and oom["result"]["metrics"]["mfu"] is None, oom
    pruned = seen["explain", trials["pruned"], *DB]
    assert not pruned["admitted"] and pruned["rule"] == "divisibility" and not pruned["attempts"], pruned


def an_error_is_an_object_where_json_was_asked_for(b):
    grid = b.folder / "wrong.yaml"
    grid.write_text("name: s\nmodel: tiny-llama\ngrid:\n  micro_bach_size: [1]\n")
    nothing = b.folder / "none.db"
    for words, expected in [
            (["plan", grid], {"kind": "unknown_name", "subject": "micro_bach_size", "file": str(grid), "line": 4, "column": 3}),
            (["plan", b.folder / "none.yaml"], {"kind": "not_found", "subject": str(b.folder / "none.yaml")}),
            (["best", "--metric", "tokens_s", *DB], {"kind": "invalid_value", "subject": "tokens_s"}),
            (["status", "--db", nothing], {"kind": "not_found", "subject": str(nothing)}),
            (["status", "no-such-sweep", *DB], {"kind": "not_found", "subject": "no-such-sweep"}),
            (["query", *DB], {"kind": "failed"}), (["best", "--no-such-option", *DB], {"kind": "unknown_name"}),
            (["bets"], {"kind": "unknown_name", "subject": "bets"})]:
        done = b.sweep(*words, "--json")
        error = json.loads(done.stderr.splitlines()[-1])["error"]
        assert (done.returncode, done.stdout) == (2, ""), done
        assert error.pop("message") and error == expected, (words, error)
        plain = b.sweep(*words)
        assert plain.returncode == 2 and plain.stderr.startswith("sweep: "), plain


def as_if_it_ran(db):
    """The database of a run that is at its last trial."""
    with contextlib.closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("update allocation set ended_unix_ns = null")
        last, = connection.execute("select max(id) from attempt").fetchone()
        connection.execute("delete from result where attempt = ?", (last,))
        connection.execute("update attempt set state = 2 where id = ?", (last,))


def what_cannot_be_printed_is_an_error(b):
    for words in [["--help"], ["--version"], *b.printing()]:
        with open("/dev/full", "w") as full:
            done = b.sweep(*words, stdout=full)
        assert done.returncode == 2 and "No space left on device" in done.stderr, (words, done)


def a_closed_standard_output_is_an_error_and_no_file_gets_its_number(b):
    before = b.db.read_bytes()
    for words in b.printing():
        done = b.sweep(*words, stdout=None, preexec_fn=lambda: os.close(1))
        assert done.returncode == 2 and "standard output" in done.stderr, (words, done)
    assert b.db.read_bytes() == before


def a_reader_that_leaves_is_no_error(b):
    for words in b.printing():
        into, out = os.pipe()
        os.close(into)
        try:
            done = b.sweep(*words, stdout=out)
        finally:
            os.close(out)
        expected = b.sweep(*words)
        assert (done.returncode, done.stderr) == (expected.returncode, expected.stderr), (words, done)


def what_is_no_database_is_refused_and_left_alone(b):
    folder = b.folder / "strangers"
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "empty").touch()
    (folder / "text").write_text("no database")
    (folder / "folder").mkdir()
    subprocess.run([sys.executable, "-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('create table t(a)')",
                    folder / "foreign"], check=True)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    rows = b.folder / "rows.csv"
    rows.write_text(CSV_HEAD + "bf16,tiny-llama,h100-sxm-80gb,1,8,1,4096,1000\n")
    for name in [*(folder / n for n in ("fifo", "empty", "text", "folder", "foreign")), "/dev/null", "/dev/zero"]:
        for words in (["status"], ["query", "select 1"], ["resume"], ["run", b.names["GRID"], "--on", "local"],
                      ["import", rows], ["best"]):
            done = b.sweep(*words, "--db", name)
            assert done.returncode == 2 and str(name) in done.stderr and "version 0" not in done.stderr, (words, name, done)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert len(list(folder.iterdir())) == 5, list(folder.iterdir())


@contextlib.contextmanager
def small_disk(folder, *options):
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", folder], capture_output=True, text=True)
    if done.returncode != 0:
        raise bench.Skipped("a file system of its own cannot be mounted here: " + done.stderr.strip())
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def a_full_disk_has_an_exit_code_of_its_own_and_leaves_no_half_database(b):
    rows = b.folder / "many.csv"
    rows.write_text(CSV_HEAD + "".join(f"bf16,tiny-llama,h100-sxm-80gb,1,8,{n},4096,1000\n" for n in range(1, 4000)))
    with small_disk(b.folder / "full", "size=600k") as disk:
        for words in (["import", rows], ["merge"]):
            more = [disk / "r.db", b.db] if words == ["merge"] else ["--db", disk / "r.db"]
            with open(disk / "filler", "wb") as filler, contextlib.suppress(OSError):
                filler.write(b"x" * (1 << 20))
            done = b.sweep(*words, *more)
            assert done.returncode == 4, (words, done)
        assert [path.name for path in disk.iterdir()] == ["filler"], list(disk.iterdir())
        done = b.sweep("export", "csv", "--db", b.db, "-o", disk / "r.csv")
        assert done.returncode == 4, done


def a_read_only_file_system_is_named(b):
    with small_disk(b.folder / "ro", "size=4m") as disk:
        (disk / "r.db").write_bytes(b.db.read_bytes())
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        done = b.sweep("resume", "--db", disk / "r.db")
        assert done.returncode == 2 and "Read-only file system" in done.stderr and "not an error" not in done.stderr, done
        assert b.sweep("status", "--db", disk / "r.db").returncode == 0


CASES = [the_table_above_names_every_command, help_manual_and_documents_name_the_same_exit_codes, each_document_follows_its_schema,
         an_error_is_an_object_where_json_was_asked_for,
         what_cannot_be_printed_is_an_error,
         a_closed_standard_output_is_an_error_and_no_file_gets_its_number, a_reader_that_leaves_is_no_error,
         what_is_no_database_is_refused_and_left_alone, a_full_disk_has_an_exit_code_of_its_own_and_leaves_no_half_database,
         a_read_only_file_system_is_named]


if __name__ == "__main__":
    bench.play(CASES, Bench)
