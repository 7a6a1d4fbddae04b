#!/usr/bin/env python3
"""answers_test.py BIN: the commands that answer, on databases made by result_db: report in a headless browser, query
and its saved queries, best. Hostile names included. Comparisons are in tests/unit/cli, empty sweeps in hostile_answers_test.py."""
import csv
import io
import json
import os
import re
import subprocess

import bench
import browser

HOSTILE = "\"'><script>document.title='pwned'</script><img src=x onerror=alert(1)>&é漢"
SPEC = {"family": "llama", "layers": 2, "hidden_size": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "intermediate_size": 128,
        "vocab_size": 256}

OTHER = {**SPEC, "layers": 4}


def row(batch, tokens, outcome="ok", model="tiny", spread=0.01, **more):
    trial = {"model": model, "spec": SPEC, "hardware": "h100-sxm-80gb", "nodes": 1, "gpus_per_node": 8, "dp": 8,
             "micro_batch_size": batch, "global_batch_size": 8 * batch, "seq_len": 512, "precision": "bf16", **more}
    line = {"trial": trial, "outcome": outcome, "reason": "" if outcome == "ok" else f"rank 0 ended with {outcome} {HOSTILE}"}
    if outcome == "ok":
        step = 8 * batch * 512 / (tokens * 8) * 1000
        line["metrics"] = {"step_ms": step, "step_ms_ci_low": step * (1 - spread), "step_ms_ci_high": step * (1 + spread),
                           "forward_ms": step * 0.3, "backward_ms": step * 0.6, "optimizer_ms": step * 0.05, "timed_steps": 20,
                           "tokens_per_s": tokens * 8, "tokens_per_s_gpu": tokens, "mt_per_hour": tokens * 8 * 0.0036,
                           "cost_per_mt": 55.04 / (tokens * 8 * 0.0036), "peak_allocated_bytes": batch << 32, "alloc_retries": 0}
        line["effective"] = {"backend": "nccl"}
    else:
        line["evidence"] = json.dumps({"log_tail": HOSTILE})
    return line


class Bench(bench.Bench):
    def make(self, name, rows, question="Which?"):
        bench.store(self.bin, self.db, name, rows, question, {"gpus": [{"name": HOSTILE}], "driver": "550", "build": HOSTILE})

    def sweep(self, *words, code=0, db=True):
        return super().sweep(*words, *(["--db", self.db] if db else []), code=code, env={**os.environ, "XDG_CONFIG_HOME": str(self.folder)})


def browser_dom(file):
    with browser.page() as page:
        page.open(file.as_uri())
        return page.evaluate("document.documentElement.outerHTML")


def the_report_answers_and_can_be_pasted(b):
    rows = [row(n, 900 + 50 * n) for n in (1, 2, 4)] + [row(8, 0, "oom"), row(2, 1100, recompute="full")]
    b.make("s", rows)
    page = b.folder / "report.html"
    b.sweep("report", "s", "-o", page)
    dom = browser_dom(page)
    sections = re.findall(r'<section id="(\w+)">', dom)
    assert sections == ["answer", "cost", "heatmap", "importance", "failures", "tradeoff", "fits", "memory", "batch", "time", "environment",
                        "reproduce"], sections
    assert dom.count("<svg") >= 4 and 'class="star"' in dom and 'class="oom"' in dom
    assert "Pareto front" in dom and "headroom" in dom
    pasted = b.folder / "pasted.yaml"
    yaml = re.search(r"<summary>Grid file for sweep</summary>.*?<pre>(.*?)</pre>", dom, re.DOTALL).group(1)
    pasted.write_text(yaml)
    planned = json.loads(b.sweep("plan", pasted, "--json", db=False).stdout.splitlines()[0])
    winner = json.loads(b.sweep("best", "s", "--json").stdout)[0]["winner"]["trial"]
    assert planned["id"] == winner and winner in dom
    for tool in ("torchtitan", "Megatron-LM", "nanotron", "DeepSpeed"):
        assert f"<summary>For {tool}</summary>" in dom, tool
    config = re.search(r"<summary>For DeepSpeed</summary>.*?<pre>(.*?)</pre>", dom, re.DOTALL).group(1)
    assert json.loads(config)["train_micro_batch_size_per_gpu"] == 2


def nothing_of_a_result_becomes_markup(b):
    labels = json.dumps({HOSTILE: HOSTILE})
    b.make(HOSTILE, [row(n, 900 + n, model=HOSTILE, labels=labels if n > 1 else "") for n in (1, 2, 4)]
           + [row(8, 0, "crash", model=HOSTILE)], question=HOSTILE)
    page = b.folder / "report.html"
    b.sweep("report", "-o", page)
    source = page.read_text("utf-8")
    assert source.count("<script") == 1 and "<img" not in source, "a script that is not the page's own"
    outside = source.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|@import|url\((?!#)", outside), "the page names something outside itself"
    dom = browser_dom(page)
    assert "<title>pwned" not in dom and not re.search(r"<[^>]+ onerror=", dom)
    for words in (["best"], ["best", "--json"], ["best", "--yaml"], ["table", "cost"], ["table", "batch", "--json"],
                  ["table", "scaling", "--csv"], ["table", "max-batch", "--markdown"], ["query", "reasons"]):
        said = b.sweep(*words).stdout
        assert "\x1b" not in said, words
    parsed = list(csv.DictReader(io.StringIO(b.sweep("table", "cost", "--csv").stdout)))
    assert len(parsed) == 4, parsed


def a_reader_that_has_seen_enough_may_leave(b):
    """`sweep query ... | head -1` prints no error and succeeds; a disk that is full does not."""
    b.make("s", [row(1, 900)])
    count = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) select i from n"
    command = [str(b.bin / "sweep"), "query", count, "--db", str(b.db)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as query:
        assert query.stdout.readline().strip() == "i"
        query.stdout.close()
        assert query.stderr.read() == ""
        assert query.wait(60) == 0
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2 and "cannot be written" in done.stderr, done


def saved_queries_and_a_file_that_stays_as_it_is(b):
    b.make("s", [row(n, 1000 + n) for n in (1, 2)])
    before = b.db.read_bytes()
    listed = b.sweep("query", "--list", db=False).stdout
    names = [line.split()[0] for line in listed.splitlines()[2:]]
    assert "outcomes" in names and "best" in names
    for name in names:
        b.sweep("query", name, *(["--set", "trial=0"] if name == "steps" else []))
    folder = b.folder / "sweep" / "queries"
    folder.mkdir(parents=True)
    (folder / "mine.sql").write_text("-- what I ask every day\nSELECT count(*) AS n FROM results WHERE micro_batch_size = :batch\n")
    assert "what I ask every day" in b.sweep("query", "--list", db=False).stdout
    assert json.loads(b.sweep("query", "mine", "--set", "batch=2", "--json").stdout) == [{"n": 1}]
    assert "'outcomes'" in b.sweep("query", "outcome", code=2).stderr
    b.sweep("query", "../mine", code=2)
    b.sweep("query", f"ATTACH '{b.folder}/x.db' AS x", code=2)
    assert b.db.read_bytes() == before, "a query changed the database"


def best_says_ties_and_what_was_measured(b):
    b.make("s", [row(1, 1000), row(2, 1005), row(4, 700), row(8, 990, spread=0.0001, model="other", spec=OTHER),
                 row(16, 1, model="other", spread=0, spec=OTHER)])
    text = b.sweep("best", "s").stdout
    assert "TIED with 1 more" in text and "transport nccl" in text and "node-a" in text, text
    path = b.folder / "winners.yaml"
    path.write_text(b.sweep("best", "s", "--yaml").stdout)
    planned = [json.loads(line)["id"] for line in b.sweep("plan", path, "--json", db=False).stdout.splitlines()]
    winners = [group["winner"]["trial"] for group in json.loads(b.sweep("best", "s", "--json").stdout)]
    assert len(planned) == 2 and sorted(planned) == sorted(winners), "one grid file plans exactly the winners"
    assert "2 winners" in b.sweep("best", "s", "--for", "DeepSpeed", code=2).stderr
    config = json.loads(b.sweep("best", "s", "--by", "hardware", "--for", "deepspeed").stdout)
    assert config["gradient_accumulation_steps"] == 1, config
    entry = json.loads(b.sweep("best", "s", "--json").stdout)[0]
    assert entry["measured"]["nodes"][0]["host"] == "node-a"


CASES = [the_report_answers_and_can_be_pasted, nothing_of_a_result_becomes_markup, a_reader_that_has_seen_enough_may_leave,
         saved_queries_and_a_file_that_stays_as_it_is, best_says_ties_and_what_was_measured]


if __name__ == "__main__":
    bench.play(CASES, Bench)
