#!/usr/bin/env python3
"""grid_files_test.py BIN FAKE_RANK: grids that come through a pipe are planned, run and resumed; a grid whose name looks like an option
runs in the background; a run that a limit ended offers a command that goes on; what a hostile grid, file name or CSV says reaches no
terminal as a control sequence; measurements that cannot be are refused with their line; a plan that has too little
memory says what to do. Sanitizers reserve terabytes of addresses, so this runs in the build without them."""
import pathlib
import re
import resource
import shlex
import subprocess
import sys

import bench
import database

GRID = """name: piped
model: {base: tiny-llama, vocab_size: 320, name: mine}
base: {hardware: cpu, dp: 1, seq_len: 64}
grid: {micro_batch_size: [1, 2]}
include: [{model: mine, micro_batch_size: 4}]
measure: {warmup_steps: 1, steps: 2}
"""
ESCAPE = "\\e[2J\\e]0;x\\a"  # its form in a double-quoted text of a grid file


class Bench(bench.Bench):
    def __init__(self, bin_dir, folder, fake_rank):
        super().__init__(bin_dir, folder)
        self.fake = fake_rank

    def said(self, *words, **more):
        done = self.sweep(*words, **more)
        return done.stdout + done.stderr


def grids_from_pipes_are_planned(b):
    for name in ("-", "/dev/stdin"):
        assert '"source":"<stdin>:4"' in b.sweep("plan", name, "--json", given=GRID).stdout, name
    script = f"printf '%s' \"$1\" | {b.bin}/sweep plan /dev/stdin --json && {b.bin}/sweep plan <(printf '%s' \"$1\") --json"
    both = subprocess.run(["bash", "-ec", script, "bash", GRID], capture_output=True, text=True, timeout=300)
    assert both.returncode == 0, both.stderr
    assert '"source":"<pipe>:4"' in both.stdout, both.stdout
    assert "<stdin>:1:1: " in b.sweep("plan", "-", given="", code=2).stderr


def a_grid_from_a_pipe_is_run_and_resumed(b):
    b.sweep("run", "-", "--detach", "--db", b.db, "--on", "local", given=GRID, code=2)
    b.sweep("run", "-", "--db", b.db, "--on", "local", "--rank", b.fake, "--quiet", given=GRID)
    assert database.rows(b.db, "SELECT grid_path, grid_text FROM sweep") == [("", GRID)]
    assert database.rows(b.db, "SELECT count(*) FROM results WHERE outcome = 'ok'") == [(3,)]
    trial = database.rows(b.db, "SELECT trial FROM results WHERE micro_batch_size = 2")[0][0]
    assert "<stdin>:4" in b.sweep("explain", trial, "--db", b.db).stdout
    b.sweep("resume", "--retry", "ok", "--db", b.db, "--rank", b.fake, "--quiet")
    assert database.rows(b.db, "SELECT count(*) FROM attempt") == [(6,)]


def a_grid_whose_name_looks_like_an_option_runs_in_the_background(b):
    (b.folder / "-g.yaml").write_text(GRID)
    b.sweep("run", "--detach", "--db", b.db, "--on", "local", "--rank", b.fake, "--", "-g.yaml")
    b.sweep("resume", "--db", b.db, "--rank", b.fake, "--quiet")  # watches it to its end
    assert database.rows(b.db, "SELECT count(*) FROM results WHERE outcome = 'ok'") == [(3,)]


def the_command_that_a_run_ends_with_goes_past_its_limit(b):
    b.sweep("run", "-", "--db", b.db, "--on", "local", "--rank", b.fake, "--quiet", given=GRID)
    said = b.sweep("resume", "--retry", "ok", "--gpu-hours", "1e-9", "--db", b.db, "--rank", b.fake, "--quiet", code=1).stderr
    offered, held = re.search(r"next: `sweep (.* --gpu-hours) H`, with H above (\S+)", said.splitlines()[-1]).groups()
    b.sweep(*shlex.split(offered), 1000 * float(held), "--rank", b.fake, "--quiet")
    assert database.rows(b.db, "SELECT count(*) FROM attempt") == [(6,)]


def nothing_hostile_reaches_a_terminal(b):
    odd = b.folder / "\x1b[2Jodd.yaml"
    texts = {
        "question": GRID + f'question: "a{ESCAPE}b"\n',
        "model": GRID.replace("mine", f'"m{ESCAPE}"'),
        "word": GRID.replace("hardware: cpu", f'hardware: "{ESCAPE}"'),
        "key": GRID + f'"{ESCAPE}": 1\n',
        "path": GRID.replace("{base: tiny-llama", f'{{config_json: "{ESCAPE}"').replace(", vocab_size: 320", ""),
        "where": GRID + f'where: ["micro_batch_size == 1", "model == \'{ESCAPE}\'"]\n',
    }
    for what, text in texts.items():
        odd.write_text(text)
        for words in (["plan", odd], ["plan", odd, "--list"], ["run", odd, "--db", b.folder / f"{what}.db", "--on", "local", "--rank", b.fake],
                      ["status", "--db", b.folder / f"{what}.db"], ["\x1b[2J"], ["plan", "--\x1b[2J"]):
            done = subprocess.run([str(b.bin / "sweep"), *map(str, words)], capture_output=True, timeout=300, cwd=b.folder)
            for stream in (done.stdout, done.stderr):
                assert not any(byte < 32 and byte != 10 for byte in stream), (what, words, stream)


def imports_that_cannot_be_are_refused(b):
    head = "model,hardware,seq_len,precision,micro_batch_size,tokens_per_s_gpu\n"
    csv = b.folder / "f.csv"
    for rate, code, needles in (("9000", 0, []), ("99999999999", 2, ["f.csv:3", "h100-sxm-80gb"]), ("0", 2, ["f.csv:3"])):
        csv.write_text(head + "llama3-8b,h100-sxm-80gb,4096,bf16,1,9000\n" + f"llama3-8b,h100-sxm-80gb,4096,bf16,2,{rate}\n")
        said = b.said("import", csv, "--db", b.folder / f"import-{rate}.db", code=code)
        for needle in needles:
            assert needle in said, said
    assert "is a device" in b.said("import", "/dev/zero", "--db", b.folder / "zero.db", code=2)
    csv.write_text(head + "\x1b[2Jx,\x1b[2Jy,4096,bf16,1,9000\n")
    assert "\x1b" not in b.said("import", csv, "--db", b.folder / "odd.db")
    rows = head + "llama3-8b,h100-sxm-80gb,4096,bf16,1,9000\n"
    b.sweep("import", "-", "--db", b.folder / "piped.db", given=rows)
    b.sweep("import", "-", "--replace", "--db", b.folder / "piped.db", given=rows, code=2)  # lines of which file?


def a_plan_without_memory_says_what_to_do(b):
    grid = b.folder / "large.yaml"
    grid.write_text('name: large\nworkload: {command: [echo, "{seq_len}", "{micro_batch_size}"]}\nbase: {hardware: cpu}\n'
                    "grid: {seq_len: {range: [1, 3000, 1]}, micro_batch_size: {range: [1, 3000, 1]}}\n")
    done = subprocess.run([b.bin / "sweep", "plan", grid, "--max-points", "9000000"], capture_output=True, text=True, timeout=300, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
    assert done.returncode == 2 and "internal" not in done.stderr and "axis" in done.stderr, done


CASES = [grids_from_pipes_are_planned, a_grid_from_a_pipe_is_run_and_resumed,
         a_grid_whose_name_looks_like_an_option_runs_in_the_background, the_command_that_a_run_ends_with_goes_past_its_limit, nothing_hostile_reaches_a_terminal,
         imports_that_cannot_be_are_refused, a_plan_without_memory_says_what_to_do]

if __name__ == "__main__":
    bench.play(CASES, Bench, own=[pathlib.Path(sys.argv[2])])
