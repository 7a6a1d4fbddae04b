#!/usr/bin/env python3
"""trial_dom_test.py BIN [PICTURES]: the pages of one trial and of a comparison in a headless browser: the time of a step by rank and the
schedule of a pipeline as the records have them, load where it was sampled, no section of what is not known, nothing beyond the page at
three widths, no script but the page's own whatever a cluster says."""
import json
import pathlib
import subprocess
import sys
import tempfile

import bench
import browser
from answers_test import HOSTILE, row
from heatmap_dom_test import expect

MS = 1_000_000
MICROS = 4
FORWARD, BACKWARD, UPDATE = (20, 28), (40, 52), 6  # ms of a step, by stage
STEP = 130


def samples(stage):
    steps = 3
    return {"repeat": [0] * steps, "step": list(range(steps)), "warmup": [True, False, False], "step_ns": [200 * MS, STEP * MS, STEP * MS],
            "forward_ns": [FORWARD[stage] * MS] * steps, "backward_ns": [BACKWARD[stage] * MS] * steps, "optimizer_ns": [UPDATE * MS] * steps,
            "exposed_comm_ns": [(STEP - FORWARD[stage] - BACKWARD[stage] - UPDATE) * MS] * steps, "tokens": [512] * steps,
            "loss": [3.0, 2.5, 2.25], "alloc_retries": [0] * steps}


def record(rank, **more):
    return {"rank": rank, "outcome": "ok", "samples": samples(rank), "peak_allocated_bytes": (rank + 1) << 30, "host_peak_rss_bytes": 1 << 28,
            "cpu_percent": 97.5, "effective": {"device": "cuda", "backend": f"nccl {HOSTILE}", "devices": str(rank), "cores": [rank]}, **more}


def pipeline():
    line = row(1, 100.0, nodes=1, gpus_per_node=2, dp=1, pp=2, grad_accum=MICROS, global_batch_size=MICROS)
    line["metrics"] |= {"step_ms": STEP, "forward_ms": FORWARD[1], "backward_ms": BACKWARD[1], "optimizer_ms": UPDATE, "bubble": 0.3,
                        "predicted_bytes": 3 << 30, "peak_allocated_bytes": 2 << 30}
    del line["effective"]
    line["records"] = [record(0), record(1)]
    line["end"] = {"cause": "done", "started_unix_ns": 1_790_000_000 * 10**9, "ended_unix_ns": 1_790_000_041 * 10**9, "load": {"nodes": [
        {"host": f"node-a {HOSTILE}", "at_s": [1.0, 2.0, 3.0], "util": [10.0, None, 90.5], "memory_bytes": [1e9, 2e9, 2e9]},
        {"host": "node-b", "at_s": [1.0, 2.0], "util": [20.0, 80.0], "memory_bytes": [1e9, 1.5e9]}]}}
    return line


def crashed():
    line = row(2, 0, "crash", nodes=1, gpus_per_node=2, dp=2)
    line["records"] = [{"rank": 0, "outcome": "crash", "message": f"boom {HOSTILE}", "phase": "step"}]
    line["exits"] = [{"rank": 1, "pid": 7, "signal": 11, "log_tail": f"Traceback {HOSTILE}\nlast line"}]
    return line


def make(bin_dir, folder):
    lines = [pipeline(), row(4, 100.0, nodes=1), crashed(), row(8, 0, "pruned", nodes=1)]
    again = [row(4, 120.0, nodes=1), pipeline()]
    again[1]["metrics"] |= {"tokens_per_s_gpu": 80.0, "step_ms": 160.0}
    bench.store(bin_dir, folder / "r.db", "first", lines, facts={"driver": "550"})
    bench.store(bin_dir, folder / "r.db", f"then {HOSTILE}", again, facts={"driver": "560"})
    ids = json.loads(subprocess.run([bin_dir / "sweep", "query", "--db", folder / "r.db", "--json",
                                     "select trial, outcome, pp from results where sweep = 'first' order by micro_batch_size"],
                                    check=True, capture_output=True, timeout=60).stdout)
    return [one["trial"] for one in ids]


def sweep(bin_dir, folder, *words, code=0):
    done = subprocess.run([bin_dir / "sweep", *words, "--db", folder / "r.db"], capture_output=True, text=True, timeout=120)
    expect(done.returncode == code, f"{words}: exit {done.returncode}: {done.stderr}")
    return done


def marks(page, section):
    return page.attributes(f"#{section} svg .mark-rect path", "aria-label")


def sections(page):
    return page.attributes("section[id]", "id")


def is_safe(page):
    expect(page.evaluate("window.pwned") is None and "pwned" not in page.evaluate("document.title").split("<")[0], "a text was run")
    expect(page.evaluate("document.images.length") == 0, "a text became an element")
    expect(page.problems == [], f"the page complains: {page.problems}")


def fits(page, file, pictures):
    for width in (420, 1000, 1400):
        page.open(file.as_uri(), width=width)
        expect(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{file.name} is wider than its window of {width}")
        drawn = page.evaluate("Array.from(document.querySelectorAll('figure.drawn svg'), (s) => [s.getBoundingClientRect().width, s.parentElement.clientWidth])")
        expect(all(0.9 * room <= wide <= room + 1 for wide, room in drawn), f"figures are not as wide as their room at {width}: {drawn}")
        beyond = page.evaluate("Array.from(document.querySelectorAll('figure.drawn svg'), (s) => { const b = s.getBoundingClientRect(); "
                               "return Array.from(s.querySelectorAll('text')).filter((t) => { const c = t.getBoundingClientRect(); "
                               "return c.left < b.left - 1 || c.right > b.right + 1; }).map((t) => t.textContent); }).flat()")
        expect(beyond == [], f"labels beyond their figure at {width}: {beyond}")
        expect(not any("…" in text for text in page.texts("figure.drawn svg text")), "a label is cut")
        if pictures:
            page.picture(f"{pictures}/{file.stem}_{width}.png")
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    if pictures:
        page.picture(f"{pictures}/{file.stem}_dark.png")
    page.call("Emulation.setEmulatedMedia", media="print", features=[])
    if pictures:
        page.picture(f"{pictures}/{file.stem}_print.png")
    page.call("Emulation.setEmulatedMedia", media="", features=[])
    expect(ground != "rgb(255, 255, 255)", "not dark in the dark")
    is_safe(page)


def a_pipeline_shows_its_time_by_rank(page):
    expect(sections(page) == ["outcome", "settings", "time", "schedule", "steps", "memory", "load", "ranks", "effective", "metrics", "attempts", "again"],
           f"sections: {sections(page)}")
    time = marks(page, "time")
    for rank in (0, 1):
        waited = STEP - FORWARD[rank] - BACKWARD[rank] - UPDATE
        for part, ms in (("forward", FORWARD[rank]), ("backward", BACKWARD[rank]), ("optimizer", UPDATE), ("bubble", waited)):
            expect(any(label.startswith(f"rank {rank}: {part} {ms}") for label in time), f"rank {rank} has {ms} ms of {part}: {time}")
    expect(not any("other" in label or "communication" in label for label in time), f"the wait for the other stage counts twice: {time}")
    rows = page.texts("#time svg .role-axis-label text")
    expect(any(text.startswith("rank 1, stage 1: 130 ms") for text in rows), f"the rows: {rows}")
    schedule = marks(page, "schedule")
    expect(len(schedule) == 2 * 2 * MICROS, f"{len(schedule)} spans of {MICROS} micro-batches on 2 stages: {schedule}")
    expect("No recording" in page.texts("#schedule p")[0], "the schedule is taken for a recording")
    first = page.evaluate("(() => { const of = (l) => document.querySelector(`#schedule svg [aria-label^='${l}']`).getBoundingClientRect(); "
                          "return [of('forward of micro-batch 0').width, of('backward of micro-batch 0').width]; })()")
    expect(abs(first[0] / first[1] - FORWARD[0] / BACKWARD[0]) < 0.05, f"lengths are not as measured: {first}")


def load_and_ranks_are_as_recorded(page):
    heads = page.texts("#load h3")
    expect(heads == ["Utilisation [%]", "Memory of the fullest GPU or rank [GiB]"], f"power was not sampled: {heads}")
    util = page.evaluate("Array.from(document.querySelector('#load figure').querySelectorAll('svg .mark-symbol path'), (e) => e.getAttribute('aria-label'))")
    expect(len(util) == 4 and any("90.5 % at 3" in label for label in util), f"a missing sample is not 0: {util}")
    table = page.texts("#ranks tr")
    expect(len(table) == 3 and "1.0 GiB" in table[1] and "2.0 GiB" in table[2], f"the ranks: {table}")
    expect("message" not in table[0], "a column that says nothing")
    expect(len(page.texts("#effective h3")) == 1, "ranks with the same settings stand apart")
    expect("+50" in page.texts("#memory p")[0], f"predicted against measured: {page.texts('#memory p')}")


def what_is_not_known_has_no_section(page, bin_dir, folder, ids):
    sweep(bin_dir, folder, "explain", ids[1], "first", "-o", folder / "crash.html")
    page.open((folder / "crash.html").as_uri())
    expect(sections(page) == ["outcome", "settings", "ranks", "effective", "metrics", "attempts", "log", "again"] or
           sections(page) == ["outcome", "settings", "ranks", "attempts", "log", "again"], f"sections of a crash: {sections(page)}")
    expect("last line" in page.texts("#log pre")[0] and "Traceback" in page.texts("#log pre")[0], "the end of the log")
    expect("signal 11" in page.texts("#ranks tr")[2] and "boom" in page.texts("#ranks tr")[1], f"ranks: {page.texts('#ranks tr')}")
    is_safe(page)
    sweep(bin_dir, folder, "explain", ids[3], "first", "-o", folder / "pruned.html")
    page.open((folder / "pruned.html").as_uri())
    expect(sections(page) == ["outcome", "settings", "again"], f"sections of a pruned trial: {sections(page)}")
    is_safe(page)


def compares(page, bin_dir, folder, ids, pictures):
    sides = folder / "sides.html"
    said = sweep(bin_dir, folder, "compare", "first", "--trials", f"{ids[0]},{ids[2]}", "-o", sides).stdout
    expect("pp" in said and "tokens_per_s_gpu" in said, said)
    fits(page, sides, pictures)
    expect(sections(page) == ["differs", "time", "metrics"], f"sections: {sections(page)}")
    expect(any(text.startswith("pipeline parallel") for text in page.texts("#differs tr")), f"what differs: {page.texts('#differs tr')}")
    rows = json.loads(sweep(bin_dir, folder, "compare", "first", "--trials", f"{ids[0]},{ids[2]}", "--json").stdout)
    step = next(one for one in rows if one["metric"] == "step_ms")
    expect(step["better"] == "lower" and step[f"verdict_{ids[2]}"] == ("better" if step[ids[2]] < step[ids[0]] else "worse"), step)
    expect(abs(step[f"ratio_{ids[2]}"] - step[ids[2]] / step[ids[0]]) < 1e-12, step)
    both = folder / "both.html"
    sweep(bin_dir, folder, "compare", "first", f"then {HOSTILE}", "-o", both)
    fits(page, both, pictures)
    expect(sections(page) == ["summary", "differs", "time", "metrics", "configurations"], f"sections: {sections(page)}")
    expect(any("driver" in text and "560" in text for text in page.texts("#differs li")), f"machines: {page.texts('#differs li')}")
    expect(len({label.split(":")[0] for label in marks(page, "time")}) == 4, f"A and B of two configurations: {marks(page, 'time')}")
    three = folder / "three.html"
    sweep(bin_dir, folder, "compare", "first", f"then {HOSTILE}", "first", "-o", three)
    fits(page, three, pictures)
    expect(sections(page) == ["summary", "differs", "time", "metrics", "configurations"], f"sections: {sections(page)}")
    heads = page.texts("#configurations th")
    expect("B against A" in heads and "C against A" in heads, f"each against the first: {heads}")
    expect(any('"560" in B' in text and '"550" in C' in text for text in page.texts("#differs li")), f"machines of all: {page.texts('#differs li')}")
    expect(len({label.split(":")[0] for label in marks(page, "time")}) == 6, f"A, B and C of two configurations: {marks(page, 'time')}")
    expect(any("1.00× of 2: 0 better, 0 worse" in text for text in page.texts("#metrics tr")), f"C is A again: {page.texts('#metrics tr')}")
    for words in (("first", "--trials", ids[0]), ("first", "first", "--trials", f"{ids[0]},{ids[2]}"), ("first", "--trials", f"{ids[0]},nonsense"),
                  ("first",), ("first", "first", "-o", folder / "x.svg")):
        sweep(bin_dir, folder, "compare", *words, code=2)


def main(bin_dir, pictures=None):
    bin_dir = pathlib.Path(bin_dir).resolve()
    with tempfile.TemporaryDirectory() as scratch, browser.page() as page:
        folder = pathlib.Path(scratch)
        ids = make(bin_dir, folder)
        sweep(bin_dir, folder, "explain", ids[0], "first", "-o", folder / "trial.html")
        sweep(bin_dir, folder, "explain", ids[0], "first", "-o", folder / "trial.pdf", code=2)
        fits(page, folder / "trial.html", pictures)
        a_pipeline_shows_its_time_by_rank(page)
        load_and_ranks_are_as_recorded(page)
        what_is_not_known_has_no_section(page, bin_dir, folder, ids)
        compares(page, bin_dir, folder, ids, pictures)
    print("pages of trials and comparisons: time by rank, schedule, load and ranks as recorded; three widths, dark, print")


if __name__ == "__main__":
    main(*sys.argv[1:])
