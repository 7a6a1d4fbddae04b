#!/usr/bin/env python3
"""strategy_test.py BIN FAKE_RANK: sweeps with a strategy over ranks that play step times and memory. `batch` finds, on 20 layouts, what the full
grid finds, with at most log2(range) + 2 trials each; a search runs few trials, goes on after an interruption, and its answers are reused."""
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import bench
from processes import wait_for

LARGEST = 12
# A layout is a pair of threads and grad_bucket_mb; each has its own largest micro-batch. fake 1 plays oom.
BATCH = f"""name: NAME
model: tiny-llama
base: {{hardware: cpu, seq_len: 64, grad_accum: 1}}
grid:
  threads: [1, 2, 3, 4]
  grad_bucket_mb: [1, 2, 3, 4, 5]
  micro_batch_size: {{range: [1, {LARGEST}, 1]}}
derive:
  most: (threads * 5 + grad_bucket_mb * 3) % {LARGEST} + 1
  fake: min(1, max(0, micro_batch_size - most))
  fake_step_ms: 4
measure: {{warmup_steps: 1, steps: 2}}
"""
EARLIER = """name: NAME
model: tiny-llama
base: {hardware: cpu, gpus_per_node: 1, seq_len: 64, threads: 2}
grid: {micro_batch_size: [1, 64]}
derive: {fake_step_ms: 4, fake: 0}
measure: {warmup_steps: 1, steps: 2}
"""
UNSET = """name: NAME
model: tiny-llama
base: {hardware: cpu, gpus_per_node: 1, seq_len: 64}
grid: {recompute: [none, full]}
derive: {fake_step_ms: 4, fake: 0}
measure: {warmup_steps: 1, steps: 2}
"""
SEARCH = """name: NAME
model: tiny-llama
base: {hardware: cpu, seq_len: 64, global_batch_size: 64}
grid: {micro_batch_size: {pow2: [1, 64]}, optimizer: [plain, foreach, fused], recompute: [none, full]}
derive: {fake_step_ms: 4 + 64 // micro_batch_size, fake: 0}
measure: {warmup_steps: 1, steps: 6}
strategy: {kind: search, max_trials: 6}
"""


def largest_by_layout(b, name):
    return dict(b.rows(f"SELECT threads || '/' || grad_bucket_mb, max(micro_batch_size) FROM results WHERE sweep = '{name}' AND outcome = 'ok' GROUP BY 1"))


def batch_finds_what_the_grid_finds(b):
    b.run(BATCH, "whole")
    b.run(BATCH, "few", "--strategy", "batch")
    whole, few = largest_by_layout(b, "whole"), largest_by_layout(b, "few")
    assert len(whole) == 20 and whole == few, (whole, few)
    tried = b.rows("SELECT count(*) FROM results WHERE sweep = 'few' AND attempts > 0 GROUP BY threads, grad_bucket_mb")
    assert max(count for (count,) in tried) <= math.ceil(math.log2(LARGEST)) + 2, tried
    assert b.rows("SELECT DISTINCT rule FROM results WHERE sweep = 'few' AND outcome = 'pruned' ORDER BY 1") == [("batch",), ("history",)]


def a_search_goes_on_after_an_interruption(b):
    process = subprocess.Popen(b.words(*b.run_words(SEARCH, "found")), stderr=subprocess.PIPE, text=True)
    wait_for(lambda: b.db.exists() and b.rows(
        "SELECT count(*) FROM results WHERE sweep = 'found' AND outcome = 'ok'")[0][0] >= 2, 200, "two results")
    process.send_signal(signal.SIGINT)  # it may have ended by then
    _, said = process.communicate(timeout=200)
    assert process.returncode in (130, 0), said
    before = dict(b.rows("SELECT trial, attempts FROM results WHERE sweep = 'found' AND outcome = 'ok'"))
    said = b.run(SEARCH, "found")
    assert "strategy search: at most 6 trials" in said, said
    after = dict(b.rows("SELECT trial, attempts FROM results WHERE sweep = 'found' AND outcome = 'ok'"))
    assert len(after) <= 6 and all(after[trial] == attempts for trial, attempts in before.items()), (before, after)
    assert b.rows("SELECT count(*) FROM results WHERE sweep = 'found' AND outcome = 'pruned' AND rule IN ('search', 'recompute')")[0][0] == 42 - len(after)
    best = b.rows("SELECT max(tokens_per_s_gpu) FROM results WHERE sweep = 'found'")[0][0]
    assert best > 0
    return after


def its_answers_are_reused(b, found):
    said = b.run(SEARCH, "again", "--reuse", "--strategy", "grid")
    assert re.search(rf"reuse: {len(found)} trials have their answers from earlier sweeps \(found\)", said), said
    assert b.rows("SELECT count(*) FROM results WHERE sweep = 'again' AND outcome = 'ok'") == [(42,)]
    reused = {trial for (trial,) in b.rows("SELECT trial FROM results WHERE sweep = 'again' AND outcome = 'ok' AND attempts = 0")}
    assert reused == set(found), (reused, found)
    said = b.sweep("explain", next(iter(found)), "again", "--db", b.db)
    assert "reused from sweep found" in said, said


def defaults_come_from_earlier_results(b):
    """They are stored with the sweep: it keeps them, though better results come."""
    b.run(EARLIER, "earlier")
    best, = b.rows("SELECT trial FROM results WHERE sweep = 'earlier' AND micro_batch_size = 64")
    said = b.sweep("plan", b.grid(UNSET, "unset"), "--suggested", "--db", b.db)
    assert f"trial {best[0]} of sweep earlier" in said and "micro_batch_size: 64" in said, said
    said = b.run(UNSET, "unset", "--suggested")
    assert f"trial {best[0]} of sweep earlier" in said, said
    unset = "SELECT micro_batch_size, threads, recompute, attempts FROM results WHERE sweep = 'unset' ORDER BY recompute"
    first = b.rows(unset)
    assert first == [(64, 2, "full", 1), (64, 2, "none", 1)], first
    text, = b.rows("SELECT grid_text FROM sweep WHERE name = 'unset'")[0]
    assert "suggested: {micro_batch_size: 64, threads: 2}" in text, text
    assert b.rows("SELECT count(*) FROM event WHERE kind = 'suggested'") == [(1,)]
    b.run(EARLIER.replace("[1, 64]", "[1, 4096]"), "grown")
    for again in (b.run_words(UNSET, "unset", "--suggested"), ["resume", "unset", "--db", b.db, "--rank", b.rank]):
        b.sweep(*again)
        assert b.rows(unset) == first
    assert b.rows("SELECT count(*) FROM event WHERE kind = 'suggested'") == [(1,)]
    b.run(UNSET, "later", "--suggested")
    assert b.rows("SELECT DISTINCT micro_batch_size FROM results WHERE sweep = 'later'") == [(4096,)]
    b.sweep(*b.run_words(UNSET.replace("tiny-llama", "tiny-qwen2"), "other", "--suggested"), code=2)


def the_playbook_explains_itself(b):
    said = b.run(SEARCH, "book", "--strategy", "playbook", "--max-trials", "8")
    assert "step 1, fit" in said and "step 3, tune: micro_batch_size 2 instead of 1" in said, said
    assert b.rows("SELECT count(*) FROM results WHERE sweep = 'book' AND outcome = 'ok'")[0][0] <= 8


def main():
    os.environ.pop("SWEEP_DB", None)
    with tempfile.TemporaryDirectory() as name:
        b = bench.PlayedBench(pathlib.Path(sys.argv[1]), pathlib.Path(name), sys.argv[2])
        batch_finds_what_the_grid_finds(b)
        found = a_search_goes_on_after_an_interruption(b)
        its_answers_are_reused(b, found)
        defaults_come_from_earlier_results(b)
        the_playbook_explains_itself(b)


if __name__ == "__main__":
    main()
