#!/usr/bin/env python3
"""shortcuts_test.py BIN RANK: what a sweep does not run, or not to its end: automatic micro-batch sizes, trials stopped early, trials that
must run out of memory, and the audit of what was pruned; with ranks that play step times and memory."""
import json
import math
import os
import re
import sys

import bench

AUTO = """name: NAME
model: tiny-llama
base: {hardware: cpu, seq_len: 64, micro_batch_size: {auto: [1, 64]}}
grid: {threads: [1, 2], grad_bucket_mb: [1, 2]}
derive: {fake: "min(1, max(0, micro_batch_size - 20 * grad_bucket_mb))", fake_step_ms: 2}
measure: {warmup_steps: 1, steps: 2}
"""
EARLY = """name: NAME
model: tiny-llama
base: {hardware: cpu, seq_len: 64}
grid: {grad_bucket_mb: [1, 2, 3, 4, 5, 6]}
derive: {fake: 0, fake_step_ms: "5 + 60 * min(1, grad_bucket_mb - 1)"}
measure: {warmup_steps: 1, steps: 12, early_stop: true}
"""
OOM = """name: NAME
model: tiny-llama
base: {hardware: cpu, seq_len: 64}
grid: {threads: [1, 2], micro_batch_size: {range: [1, 12, 1]}}
derive: {fake: "min(1, max(0, micro_batch_size - 5))", fake_step_ms: 2}
measure: {warmup_steps: 1, steps: 2}
strategy: {kind: grid, history: true}
"""


class Bench(bench.PlayedBench):
    options = ("--slots", "1")

    def audited(self, name):
        return json.loads(self.sweep("status", name, "--db", self.db, "--json"))["audited"]


def sizes_are_found(b):
    said = b.sweep("plan", b.grid(AUTO, "auto"), "--db", b.db)
    most = int(re.search(r"of them at most (\d+) run", said)[1])
    b.run(AUTO, "auto")
    found = b.rows("SELECT grad_bucket_mb, max(micro_batch_size), count(*) FROM results WHERE sweep = 'auto' AND attempts > 0 AND outcome = 'ok' "
                   "GROUP BY threads, grad_bucket_mb")
    assert len(found) == 4 and all(size == 20 * bucket for bucket, size, _ in found), found
    tried, = b.rows("SELECT count(*) FROM results WHERE sweep = 'auto' AND attempts > 0")[0]
    assert tried <= most < 4 * 40, (tried, most)
    assert b.rows("SELECT count(*) FROM results WHERE sweep = 'auto' AND outcome IS NULL") == [(0,)]


def slow_trials_stop_early(b, text=EARLY):
    b.run(text, "early")
    stopped = b.rows("SELECT timed_steps, steps_saved, step_ms_ci_low FROM results WHERE sweep = 'early' AND steps_saved IS NOT NULL")
    assert stopped and all(timed + saved == 12 and saved > 0 for timed, saved, _ in stopped), stopped
    best, high = b.rows("SELECT trial, step_ms_ci_high FROM results WHERE sweep = 'early' AND steps_saved IS NULL ORDER BY tokens_per_s_gpu DESC")[0]
    assert all(low > high for _, _, low in stopped), (stopped, high)
    answer = json.loads(b.sweep("best", "early", "--db", b.db, "--json"))
    assert best in json.dumps(answer), answer
    said = b.sweep("status", "early", "--db", b.db)
    assert re.search(rf"^saved +{len(stopped)} trials? stopped early", said, re.M), said
    figures = json.loads(b.sweep("status", "early", "--db", b.db, "--json"))
    saved = b.rows("SELECT sum(steps_saved * step_ms) / 1e3 FROM results WHERE sweep = 'early'")[0][0]
    assert figures["stopped_early"]["trials"] == len(stopped) and figures["audited"] == [], figures
    assert math.isclose(figures["stopped_early"]["seconds_saved"], saved, rel_tol=0.01), (figures["stopped_early"], saved)
    page = b.folder / "early.html"
    b.sweep("report", "early", "--db", b.db, "-o", page)
    assert "stopped early" in page.read_text()
    # Another sweep does not take a trial that was stopped early as an answer.
    b.run(text, "whole", "--reuse")
    whole = b.rows("SELECT count(*) FROM results WHERE sweep = 'whole' AND attempts = 0")[0][0]
    assert whole <= b.rows("SELECT count(*) FROM results WHERE sweep = 'early' AND steps_saved IS NULL")[0][0], whole


def what_must_run_out_of_memory_is_not_run(b):
    b.run(OOM.replace("[1, 12, 1]", "[1, 6, 1]"), "oom")
    b.run(OOM, "oom")  # larger sizes are predicted faster, and would run first
    ran = b.rows("SELECT count(*) FROM results WHERE sweep = 'oom' AND outcome = 'oom'")[0][0]
    pruned = b.rows("SELECT reason FROM results WHERE sweep = 'oom' AND rule = 'history'")
    assert 2 <= ran and ran + len(pruned) == 14 and pruned, (ran, pruned)
    ooms = {trial for (trial,) in b.rows("SELECT trial FROM results WHERE sweep = 'oom' AND outcome = 'oom'")}
    assert all(re.search(r"trial ([0-9a-f]{16})", reason)[1] in ooms for (reason,) in pruned), pruned
    assert b.rows("SELECT count(*) FROM results WHERE rule = 'history' AND predicted_ms IS NULL") == [(0,)]


def an_audit_says_how_often_pruning_was_wrong(b):
    b.run(OOM.replace("[1, 12, 1]", "[1, 6, 1]"), "audit")
    b.run(OOM, "audit", "--audit", "99%")
    audited = b.rows("SELECT outcome, count(*) FROM results WHERE sweep = 'audit' AND rule = 'history' AND attempts > 0 GROUP BY 1")
    assert [outcome for outcome, _ in audited] == ["oom"], audited
    said = b.sweep("status", "audit", "--db", b.db)
    assert re.search(rf"rule history: {audited[0][1]} trials pruned by it ran as an audit; 0 of them fit \(0 % wrong\)", said), said
    assert b.audited("audit") == [{"rule": "history", "trials": audited[0][1], "wrong": 0}]
    b.sweep("run", b.folder / "audit.yaml", "--audit", "150%", code=2)


def an_audit_finds_wrong_pruning(b):
    only_six = OOM.replace("min(1, max(0, micro_batch_size - 5))", "max(0, 1 - max(micro_batch_size - 6, 6 - micro_batch_size))")
    b.run(only_six, "wrong", "--audit", "99%")
    ran = b.rows("SELECT micro_batch_size, outcome FROM results WHERE sweep = 'wrong' AND rule = 'history' AND attempts > 0")
    assert ran and all(size > 6 and outcome == "ok" for size, outcome in ran), ran
    assert b.audited("wrong") == [{"rule": "history", "trials": len(ran), "wrong": len(ran)}]
    page = b.folder / "wrong.html"
    b.sweep("report", "wrong", "--db", b.db, "-o", page)
    assert f"{len(ran)} of them fit (100 % wrong)" in page.read_text()


def money_is_a_limit(b):
    refused = b.sweep("run", b.grid(OOM + "limits: {usd: 5}\n", "money"), "--db", b.db, code=2)  # a CPU has no price
    assert "price" in refused, refused


CHOICES = """name: NAME
model: llama3-8b
base: {seq_len: 4096, global_batch_size: 256, precision: bf16_mixed, zero: 3}
grid: {hardware: [h100-sxm-80gb, a100-80gb, h100-pcie-80gb], nodes: [1, 2, 4], tp: [1, 2], recompute: [none, full]}
"""
PRICES = {"h100-sxm-80gb": 55.04, "a100-80gb": 27.45}  # USD of a node for an hour in the catalogue; the third has none


def chosen(b, *words, code=0):
    """Rows of `sweep choose`: hardware, nodes, days, usd, tokens/s."""
    said = b.sweep("choose", b.grid(CHOICES, "choices"), "--tokens", "1e11", "--show", "100", *words, code=code)
    rows = [line.split() for line in said.splitlines() if line.split() and line.split()[0] in ("h100-sxm-80gb", "a100-80gb", "h100-pcie-80gb")]
    return [(row[0], int(row[1]), float(row[9]), None if row[10] == "-" else float(row[10]), float(row[11])) for row in rows], said


def machines_are_chosen_by_price_and_time(b):
    every, _ = chosen(b)
    assert {row[0] for row in every} == {"h100-sxm-80gb", "a100-80gb", "h100-pcie-80gb"}, every
    for hardware, nodes, days, usd, rate in every:
        assert abs(days - 1e11 / rate / 86400) <= 0.06 + 0.005 * days, (days, rate)
        assert (usd is None) == (hardware not in PRICES), (hardware, usd)
        if usd is not None:
            assert abs(usd / (PRICES[hardware] * nodes * 1e11 / rate / 3600) - 1) < 0.01, (hardware, nodes, usd, rate)
    prices = [row[3] if row[3] is not None else math.inf for row in every]
    assert prices == sorted(prices), "the cheapest first, those without a price last"
    median = sorted(row[2] for row in every)[len(every) // 2]
    soon, _ = chosen(b, "--days", median)
    assert soon and len(soon) < len(every) and all(row[2] <= median + 0.05 for row in soon), (median, soon)
    budget = sorted(row[3] for row in every if row[3] is not None)[3]
    fast, _ = chosen(b, "--usd", budget)
    assert fast and all(row[3] is not None and row[3] <= budget + 1 for row in fast), (budget, fast)
    assert [row[2] for row in fast] == sorted(row[2] for row in fast), "a budget alone: the fastest first"
    assert chosen(b, "--usd", 1, code=1)[0] == []


if __name__ == "__main__":
    os.environ.pop("SWEEP_DB", None)
    bench.play([sizes_are_found, slow_trials_stop_early, what_must_run_out_of_memory_is_not_run, an_audit_says_how_often_pruning_was_wrong,
                an_audit_finds_wrong_pruning, money_is_a_limit, machines_are_chosen_by_price_and_time], Bench, own=sys.argv[2:3])
