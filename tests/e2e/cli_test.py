#!/usr/bin/env python3
"""cli_test.py BIN: the programs as people use them: answers, errors with the way out, exit codes, two runs at once, a disk
that fills up. Exit 77: a case could not be set up here; its name and the reason are printed."""
import json
import sqlite3
import subprocess

import bench
from processes import wait_for

GRID = """
name: small
question: Which micro-batch is fastest?
model: {family: llama, name: t, layers: 1, hidden_size: 32, heads: 2, kv_heads: 2, intermediate_size: 64, vocab_size: 64}
base: {hardware: cpu, seq_len: 16, global_batch_size: 4}
grid:
  micro_batch_size: [1, 2, 3, 4]
measure: {warmup_steps: 1, steps: STEPS}
"""


class Bench(bench.Bench):
    def grid(self, steps=3, text=GRID, name="grid.yaml"):
        path = self.folder / name
        path.write_text(text.replace("STEPS", str(steps)))
        return path

    def start(self, *words):
        return subprocess.Popen(self.words(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder)


def wrong_input_is_refused_with_the_way_out(b):
    grid = b.grid()
    bad = b.grid(text=GRID.replace("micro_batch_size", "micro_batch_sise"), name="bad.yaml")
    cases = [
        (["run", "absent.yaml"], ["absent.yaml", "no such file"]),
        (["run", bad], ["bad.yaml:7:", "micro_batch_size"]),
        (["run", grid, "--on", "pbs"], ["pbs", "local"]),
        (["run", grid, "--db", b.folder / "absent" / "r.db"], ["absent"]),
        (["resume", "--db", "absent.db"], ["absent.db", "sweep run"]),
        (["best", "--db", "absent.db"], ["absent.db"]),
        (["models", "lama3-8b"], ["llama3-8b"]),
        (["hardware", "h100"], ["h100-"]),
        (["heatmap", "-o", "x.jpg"], [".svg"]),
        (["completion", "tcsh"], ["bash"]),
        (["runn"], ["runn", "'run'"]),
        ([], []),
    ]
    for words, expected in cases:
        said = b.sweep(*words, code=2).stderr
        for text in expected:
            assert text in said, f"sweep {words} does not say '{text}':\n{said}"
        assert "internal fault" not in said, said
    assert not b.db.exists(), "a refused command must leave nothing behind"


def help_goes_to_standard_output_and_bash_takes_the_completion(b):
    overview = b.sweep("--help")
    assert overview.stdout and not overview.stderr
    subprocess.run(["bash", "-n"], input=b.sweep("completion", "bash").stdout, text=True, check=True)


def the_main_job_from_plan_to_answer(b):
    grid = b.grid()
    planned = [json.loads(line) for line in b.sweep("plan", grid, "--json").stdout.splitlines()]
    assert len(planned) == 4 and sum(not p["admitted"] for p in planned) == 1
    pruned = next(p for p in planned if not p["admitted"])
    assert "4" in pruned["reason"] and "3" in pruned["reason"], pruned
    b.sweep("run", grid, "--db", b.db)
    rows = json.loads(b.sweep("query", "SELECT trial, outcome, step_ms, mfu FROM results", "--db", b.db, "--json").stdout)
    assert sorted(r["outcome"] for r in rows) == ["ok", "ok", "ok", "pruned"], rows
    assert all((r["step_ms"] is not None) == (r["outcome"] == "ok") for r in rows), "only what ran has a time"
    again = b.sweep("run", grid, "--db", b.db)
    assert len(attempts(b)) == 3, "a second run must not measure again"
    assert "DELETE" not in again.stderr
    for words in (["explain", pruned["id"][:6]], ["status"], ["best"], ["export", "csv"], ["export", "json"]):
        assert b.sweep(*words, "--db", b.db).stdout
    ok = next(r["trial"] for r in rows if r["outcome"] == "ok")
    b.sweep("logs", ok, "--db", b.db)
    for ending in ("html", "svg", "csv"):
        b.sweep("heatmap", "--db", b.db, "--rows", "micro_batch_size", "--cols", "seq_len", "-o", b.folder / f"h.{ending}")
        assert (b.folder / f"h.{ending}").stat().st_size > 100
    b.sweep("query", "DELETE FROM result", "--db", b.db, code=2)


def the_best_configuration_can_be_pasted_as_a_grid(b):
    b.sweep("run", b.grid(), "--db", b.db)
    best = json.loads(b.sweep("best", "--json", "--db", b.db).stdout)
    pasted = b.folder / "pasted.yaml"
    pasted.write_text(b.sweep("best", "--yaml", "--db", b.db).stdout)
    planned = [json.loads(line) for line in b.sweep("plan", pasted, "--json").stdout.splitlines()]
    assert len(planned) == 1 and planned[0]["id"] in json.dumps(best), (planned, best)


def another_sweep_is_predicted_by_the_results_that_are_there(b):
    six = GRID.replace("micro_batch_size: [1, 2, 3, 4]", "micro_batch_size: [1, 2, 4]\n  recompute: [none, full]")
    other = b.grid(text=six.replace("name: small", "name: other").replace("seq_len: 16", "seq_len: 32"), name="other.yaml")

    def predicted(db):
        return [json.loads(line)["predicted_ms"] for line in b.sweep("plan", other, "--json", "--db", db).stdout.splitlines()]

    b.sweep("run", b.grid(text=six), "--db", b.db)
    assert all(a != c for a, c in zip(predicted(b.db), predicted(b.folder / "none.db"), strict=True))
    for words in (["plan", other], ["run", other]):
        done = b.sweep(*words, "--db", b.db)
        assert "6 results" in done.stdout + done.stderr, done


def status_tells_the_best_apart_by_whatever_varies(b):
    b.sweep("run", b.grid(text=GRID.replace("micro_batch_size: [1, 2, 3, 4]", "recompute: [none, full]")), "--db", b.db)
    said = b.sweep("status", "--db", b.db).stdout
    assert "(recompute=none)" in said or "(recompute=full)" in said, said


def attempts(b):
    with sqlite3.connect(f"file:{b.db}?mode=ro", uri=True) as connection:  # never makes the file
        return connection.execute("SELECT * FROM attempt").fetchall()


def running(b):
    try:
        return bool(attempts(b))
    except sqlite3.OperationalError:
        return False


def a_second_run_watches_and_launches_nothing(b):
    grid = b.grid(steps=400)
    first = b.start("run", grid, "--db", b.db)
    wait_for(lambda: running(b), 120, "an attempt runs")
    second = b.start("run", grid, "--db", b.db)
    said, _ = second.communicate(timeout=300)
    first.communicate(timeout=300)
    assert first.returncode == 0 and second.returncode == 0, said
    assert "watching" in said, said
    assert len(attempts(b)) == 3, attempts(b)


def a_second_command_does_its_own_work_after_what_it_watched(b):
    grid = b.grid(steps=400)
    larger = b.grid(steps=400, text=GRID.replace("seq_len: 16, ", "").replace("grid:", "grid:\n  seq_len: [16, 32]"), name="larger.yaml")
    for words, seen, there in ((("run", larger), 6, 6), (("resume", "--retry", "ok"), 6, 3)):
        b.db.unlink(missing_ok=True)
        first = b.start("run", grid, "--db", b.db)
        wait_for(lambda: running(b), 120, "an attempt runs")
        second = b.start(*words, "--db", b.db)
        said, _ = second.communicate(timeout=300)
        first.communicate(timeout=300)
        assert first.returncode == 0 and second.returncode == 0, said
        assert "watching" in said, said
        ok = json.loads(b.sweep("query", "SELECT count(*) n FROM results WHERE outcome = 'ok'", "--json", "--db", b.db).stdout)
        assert (len(attempts(b)), ok) == (seen, [{"n": there}]), (words, attempts(b), ok)


def resume_runs_as_the_sweep_was_run(b):
    b.sweep("run", b.grid(), "--slots", 1, "--start", "exec", "--db", b.db)
    b.sweep("resume", "--retry", "ok", "--gpu-hours", 50, "--db", b.db)
    with sqlite3.connect(f"file:{b.db}?mode=ro", uri=True) as connection:
        slots = connection.execute("SELECT DISTINCT gpus FROM allocation").fetchall()
        kept = json.loads(connection.execute("SELECT options_json FROM sweep").fetchone()[0])
    assert slots == [(1,)], slots
    assert (kept["slots"], kept["start"], kept["gpu_hours"]) == (1, "exec", 50), kept


def stop_ends_it_and_resume_goes_on(b):
    first = b.start("run", b.grid(steps=20000), "--db", b.db)
    wait_for(lambda: running(b), 120, "an attempt runs")
    b.sweep("stop", "--now", "--db", b.db)
    said, _ = first.communicate(timeout=120)
    assert first.returncode == 1 and "sweep stop" in said, said
    b.sweep("run", b.grid(steps=3), "--db", b.db)
    outcomes = json.loads(b.sweep("query", "SELECT outcome FROM results", "--db", b.db, "--json").stdout)
    assert sorted(r["outcome"] for r in outcomes) == ["ok", "ok", "ok", "pruned"], outcomes


def a_full_disk_is_said_and_nothing_is_lost(b):
    small = b.folder / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", small], capture_output=True, text=True)
    if mounted.returncode != 0:
        raise bench.Skipped("mounting a small tmpfs is not permitted: " + mounted.stderr.strip())
    try:
        db = small / "r.db"
        done = subprocess.run(b.words("run", b.grid(steps=50), "--db", db), capture_output=True, text=True, timeout=300)
        assert done.returncode in (1, 4), (done.returncode, done.stderr)
        assert any(word in done.stderr for word in ("No space", "disk is full", "full")), done.stderr
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        b.sweep("run", b.grid(steps=3), "--db", db)
        with sqlite3.connect(db) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            found = connection.execute("SELECT outcome, count(*) FROM results GROUP BY outcome").fetchall()
        assert dict(found) == {"ok": 3, "pruned": 1}, found
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def a_full_disk_leaves_no_part_of_a_new_database(b):
    small = b.folder / "tight"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", small], capture_output=True, text=True)
    if mounted.returncode != 0:
        raise bench.Skipped("mounting a small tmpfs is not permitted: " + mounted.stderr.strip())
    measured = b.folder / "measured.csv"
    measured.write_text("model,hardware,seq_len,precision,mbs,tok_s_gpu\nllama3-8b,h100-sxm-80gb,4096,bf16,1,100\n")
    made = 0
    try:
        for kib in range(100, 600, 40):
            subprocess.run(["mount", "-o", f"remount,size={kib}k", small], check=True)
            done = subprocess.run(b.words("import", measured, "--db", small / "r.db"), capture_output=True, text=True, timeout=100)
            if done.returncode == 0:
                made += 1
                (small / "r.db").unlink()
                continue
            assert done.returncode == 4, (kib, done.returncode, done.stderr)
            if (small / "r.db").exists():  # made whole, and then there was no room for the row
                with sqlite3.connect(f"file:{small}/r.db?immutable=1", uri=True) as connection:
                    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), kib
            for left in small.iterdir():
                left.unlink()
        assert made > 0
    finally:
        subprocess.run(["umount", "-l", small], check=True)


CASES = [wrong_input_is_refused_with_the_way_out, help_goes_to_standard_output_and_bash_takes_the_completion, the_main_job_from_plan_to_answer,
         the_best_configuration_can_be_pasted_as_a_grid, status_tells_the_best_apart_by_whatever_varies,
         another_sweep_is_predicted_by_the_results_that_are_there, a_second_run_watches_and_launches_nothing,
         a_second_command_does_its_own_work_after_what_it_watched, resume_runs_as_the_sweep_was_run,
         stop_ends_it_and_resume_goes_on, a_full_disk_is_said_and_nothing_is_lost, a_full_disk_leaves_no_part_of_a_new_database]


if __name__ == "__main__":
    bench.play(CASES, Bench)
