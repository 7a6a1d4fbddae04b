#!/usr/bin/env python3
"""playbook_test.py SWEEP SOURCE: the shipped measurements of the Ultra-Scale Playbook, imported and drawn by the programs as
people use them. The book's best cells and the honest ones; the README's picture; files that are refused."""
import collections
import csv
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import browser
import database

# model, nodes -> the layouts that are best by the MFU the book charts: tensor and pipeline parallelism on few nodes.
BOOK = {
    ("1B", 1): ["DP4 TP1 PP2 GAS16 MBS4 ZeRO1"], ("1B", 2): ["DP8 TP1 PP2 GAS32 MBS1 ZeRO1"],
    ("1B", 4): ["DP16 TP1 PP2 GAS16 MBS1 ZeRO1"], ("1B", 8): ["DP32 TP1 PP2 GAS8 MBS1 ZeRO1"],
    ("1B", 16): ["DP64 TP2 PP1 GAS1 MBS4 ZeRO0"], ("1B", 32): ["DP64 TP4 PP1 GAS1 MBS4 ZeRO0"],
    ("1B", 64): ["DP128 TP2 PP2 GAS1 MBS2 ZeRO1"],
    ("8B", 1): ["DP2 TP1 PP4 GAS128 MBS1 ZeRO1"],
    ("8B", 2): ["DP4 TP4 PP1 GAS16 MBS4 ZeRO1", "DP4 TP1 PP4 GAS64 MBS1 ZeRO1"],  # equal in MFU and in tokens/s
    ("8B", 4): ["DP16 TP1 PP2 GAS16 MBS1 ZeRO1"], ("8B", 8): ["DP32 TP1 PP2 GAS8 MBS1 ZeRO1"],
    ("8B", 16): ["DP16 TP8 PP1 GAS2 MBS8 ZeRO0"], ("8B", 32): ["DP32 TP8 PP1 GAS1 MBS8 ZeRO0"],
    ("8B", 64): ["DP128 TP4 PP1 GAS1 MBS2 ZeRO0"],
}
# Plain data parallelism has the most tokens per second and GPU for 1B on up to 8 nodes: the charted MFU counts a tied
# embedding twice where the model is split into stages.
HONEST = {**BOOK,
          ("1B", 1): ["DP8 TP1 PP1 GAS16 MBS2 ZeRO0"], ("1B", 2): ["DP16 TP1 PP1 GAS8 MBS2 ZeRO1"],
          ("1B", 4): ["DP32 TP1 PP1 GAS4 MBS2 ZeRO1"], ("1B", 8): ["DP64 TP1 PP1 GAS4 MBS1 ZeRO1"]}
# FLOPs per token (docs/metrics.md): 6 x parameters in matrix products + 12 x layers x heads x head_dim x seq_len.
FLOPS = {"1B": 6 * (16 * (4 * 2048**2 + 3 * 2048 * 8192) + 131072 * 2048) + 12 * 16 * 2048 * 4096,
         "8B": 6 * (32 * (4 * 4096**2 + 3 * 4096 * 14336) + 131072 * 4096) + 12 * 32 * 4096 * 4096}
PEAK = 989.4e12  # H100 SXM, dense bf16


class Here:
    def __init__(self, program, source, folder):
        self.program, self.source, self.folder = program, pathlib.Path(source), pathlib.Path(folder)
        self.data = self.source / "sweeps/data/playbook_h100_1B_8B.csv"
        self.db = self.folder / "r.db"

    def sweep(self, *words, code=0, db=True, site=None):
        words = [str(w) for w in words] + (["--db", str(self.db)] if db else [])
        environment = {k: v for k, v in os.environ.items() if k != "SWEEP_DB"} | ({"SWEEP_SITE": str(site)} if site else {})
        done = subprocess.run([self.program, *words], capture_output=True, text=True, timeout=300, cwd=self.folder, env=environment)
        assert done.returncode == code, f"sweep {words}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
        return done

    def cells(self, value, *more):
        out = self.folder / "cells.csv"
        self.sweep("heatmap", "--rows", "model", "--cols", "nodes", "--value", value, "-o", out, *more)
        with open(out, newline="", encoding="utf-8") as file:
            return {(r["model"], int(r["nodes"])): r for r in csv.DictReader(file)}


def import_needs_no_flags_and_is_repeatable(here):
    first = here.sweep("import", here.data)
    assert "1631 configurations (1026 ok, 605 failed_unknown), 1631 results new" in first.stderr, first.stderr
    again = here.sweep("import", here.data)
    assert "0 results new, 1631 known" in again.stderr, again.stderr
    database.check(here.db)
    kept = database.rows(here.db, "select count(*), count(mfu), count(mfu_reported), count(tokens_per_s_gpu), count(step_ms) from results")
    assert kept == [(1631, 1026, 1026, 1026, 0)], kept
    attempts = database.rows(here.db, "select count(*) from attempt")
    assert attempts == [(1631,)], attempts


def the_books_cells_and_the_honest_ones(here):
    with open(here.data, newline="") as file:
        rows = list(csv.DictReader(file))
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["model"], int(row["nodes"])].append(row)
    for value, column, expected in (("mfu_reported", "mfu_pct", BOOK), ("tokens_per_s_gpu", "tok_s_gpu", HONEST), ("mfu", "tok_s_gpu", HONEST)):
        cells = here.cells(value)
        assert set(cells) == set(expected) == set(groups), set(cells) ^ set(expected)
        for key, cell in cells.items():
            model, _ = key
            assert cell["layout"] in expected[key], f"{value} {key}: {cell['layout']}, expected {expected[key]}"
            ok = [float(r[column]) for r in groups[key] if r["status"] == "ok"]  # the same, by another program
            top = {"mfu_reported": lambda v: v / 100, "tokens_per_s_gpu": lambda v: v, "mfu": lambda v: v * FLOPS[model] / PEAK}[value](max(ok))
            assert abs(float(cell[value]) - top) <= 2e-3 * top, f"{value} {key}: {cell[value]}, computed {top}"
            assert (int(cell["ok"]), int(cell["failed"])) == (len(ok), len(groups[key]) - len(ok)), cell
    differ = {key for key in BOOK if HONEST[key] != BOOK[key]}
    assert differ == {("1B", n) for n in (1, 2, 4, 8)}, differ


def the_readmes_picture_is_drawn_from_it(here):
    readme = (here.source / "docs/import.md").read_text()
    command = next(line for line in readme.splitlines() if line.startswith("$ sweep heatmap") and "heatmap.svg" in line)
    drawn = here.folder / "heatmap.svg"
    environment = {**os.environ, "PATH": f"{pathlib.Path(here.program).parent}:{os.environ['PATH']}", "SWEEP_DB": str(here.db)}
    subprocess.run(["bash", "-c", command[2:].replace("--db playbook.db", "")], cwd=here.folder, env=environment,
                   check=True, capture_output=True)
    assert drawn.read_text("utf-8") == (here.source / "docs/heatmap.svg").read_text("utf-8"), \
        f"docs/heatmap.svg is not what '{command}' draws; draw it anew"


def exports_come_back(here):
    here.sweep("export", "csv", "-o", "all.csv")
    other = Here(here.program, here.source, here.folder)
    other.db = here.folder / "other.db"
    other.sweep("import", "all.csv", "--sweep", "again", "--model", "1B=playbook-1b", "--model", "8B=playbook-8b")
    columns = "trial, outcome, mfu, mfu_reported, tokens_per_s_gpu, memory_reported_bytes, grad_accum, model"
    ours, theirs = (database.rows(db, f"select {columns} from results order by trial") for db in (here.db, other.db))
    assert ours == theirs, next((a, b) for a, b in zip(ours, theirs) if a != b)


def bad_files_change_nothing(here):
    before = hashlib.sha256(json.dumps(database.rows(here.db, "select * from results order by trial")).encode()).hexdigest()
    text = here.data.read_text()
    for name, content, words in (
            ("late.csv", text + "1B,1,8,1,1,16,2,256,0,ok,39.2,many,50.2\n", ["late.csv:1633:", "'many' is not a number"]),
            ("empty.csv", "", ["empty.csv: the file is empty"]),
            ("absent.csv", None, ["absent.csv: there is no such file"]),
            ("half.csv", text[:-30] + '"', ["half.csv:"]),
            ("other.csv", "a,b\n1,2\n", ["other.csv:1: column 'a' is not a field", "--map 'a=FIELD:UNIT'"])):
        if content is not None:
            (here.folder / name).write_text(content)
        said = here.sweep("import", name, "--sweep", "bad", code=2).stderr
        assert all(word in said for word in words), said
    assert database.rows(here.db, "select count(*) from sweep where name = 'bad'") == [(0,)]
    after = hashlib.sha256(json.dumps(database.rows(here.db, "select * from results order by trial")).encode()).hexdigest()
    assert before == after


HEAD = "model,hardware,seq_len,precision,micro_batch_size,dp,nodes,gpus_per_node,outcome,tokens_per_s_gpu\n"


def files_of_one_name_stay_apart(here):
    other = Here(here.program, here.source, here.folder)
    other.db = here.folder / "names.db"
    for folder, rate in (("a", 5000), ("b", 6000)):
        (here.folder / folder).mkdir()
        (here.folder / folder / "res.csv").write_text(HEAD + f"llama3-8b,h100-sxm-80gb,4096,bf16,1,8,1,8,ok,{rate}\n")

    def answer():
        return database.rows(other.db, "select sweep, tokens_per_s_gpu, attempts from results")
    other.sweep("import", "a/res.csv")
    for path in ("./a/res.csv", here.folder / "a/res.csv", "b/../a/res.csv"):
        assert "0 results new, 1 known" in other.sweep("import", path).stderr, path
    other.sweep("import", "b/res.csv", code=2)
    assert answer() == [("res", 5000, 1)], answer()
    for path in ("b/res.csv", "a/res.csv", "b/res.csv"):
        other.sweep("import", path, "--sweep", "res")
        assert answer() == [("res", 6000, 2)], (path, answer())


def a_row_without_its_result_replaces_it(here):
    other = Here(here.program, here.source, here.folder)
    other.db = here.folder / "corrected.db"
    row, file = "llama3-8b,h100-sxm-80gb,4096,bf16,{},8,1,8,{},{}\n", here.folder / "corrected.csv"
    file.write_text(HEAD + row.format(1, "ok", 5000) + row.format(2, "ok", 6000))
    other.sweep("import", file)
    for outcome, left in (("pruned", ["ok", "pruned"]), ("pending", ["ok"]), ("unsupported", ["ok", "unsupported"])):
        file.write_text(HEAD + row.format(1, "ok", 5000) + row.format(2, "ok", 6000))
        other.sweep("import", file)
        file.write_text(HEAD + row.format(1, "ok", 5000) + row.format(2, outcome, ""))
        other.sweep("import", file, code=2)
        assert "1 configuration" in other.sweep("import", file, "--replace").stderr
        other.sweep("import", file)
        found = database.rows(other.db, "select outcome from results order by outcome")
        assert found == [(each,) for each in left], (outcome, found)


def costs_follow_the_sites_prices(here):
    other = Here(here.program, here.source, here.folder)
    other.db = here.folder / "prices.db"
    (here.folder / "prices.csv").write_text(HEAD + "llama3-8b,h100-sxm-80gb,4096,bf16,1,8,1,8,ok,5000\n")
    (here.folder / "site.yaml").write_text("prices: {h100-sxm-80gb: {node_hour: 7.2}}\n")
    other.sweep("import", "prices.csv", site=here.folder / "site.yaml")
    (price, cost), = database.rows(other.db, "select usd_per_node_hour, cost_per_mt from results")
    assert (price, round(cost, 9)) == (7.2, round(7.2 / (5000 * 8 * 3600 / 1e6), 9)), (price, cost)


def the_report_fits_on_paper(here):
    """A4 within its margins is 688 px wide: whatever is wider is cut off where it is printed."""
    here.sweep("report", "playbook_h100_1B_8B", "-o", "report.html")
    with browser.page() as page:
        page.call("Emulation.setEmulatedMedia", media="print")
        page.open((here.folder / "report.html").as_uri(), width=688)
        wider = page.evaluate("Array.from(document.querySelectorAll('table, pre, svg, h1, h2, h3, p, li')).filter((e) => "
                              "e.getBoundingClientRect().right > innerWidth || e.scrollWidth > e.clientWidth + 1 && e.tagName == 'PRE')"
                              ".map((e) => e.tagName + ' ' + e.textContent.slice(0, 60))")
        assert wider == [], wider
        assert page.texts("table") and page.texts("pre"), "the page has tables and commands"


def main(program, source):
    with tempfile.TemporaryDirectory() as folder:
        here = Here(program, source, folder)
        for case in (import_needs_no_flags_and_is_repeatable, the_books_cells_and_the_honest_ones, the_readmes_picture_is_drawn_from_it,
                     the_report_fits_on_paper, exports_come_back, bad_files_change_nothing, files_of_one_name_stay_apart,
                     a_row_without_its_result_replaces_it, costs_follow_the_sites_prices):
            case(here)
            print("ok:", case.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
