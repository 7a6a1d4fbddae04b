#!/usr/bin/env python3
"""rehearsed_answers_test.py BIN: each page, table and export of a rehearsal says that it is one, and none of a measured sweep does;
`plan` shows rehearsed bytes. On databases made by result_db: no rank runs."""
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import bench
import sweep_folder

BIN = pathlib.Path(sys.argv[1]).resolve()
NOTE = "REHEARSED on phantom GPUs"
GRID = """name: layouts
model: {family: llama, name: tiny, layers: 4, hidden_size: 512, heads: 8, kv_heads: 4, intermediate_size: 1408, vocab_size: 4096}
base: {hardware: h100-sxm-80gb, gpus_per_node: 8, seq_len: 512, precision: bf16_mixed, global_batch_size: 16, micro_batch_size: 1}
grid: {tp: [1, 2], zero: [0, 1]}
"""
METRICS = {"step_ms": 10.0, "step_ms_ci_low": 9.9, "step_ms_ci_high": 10.1, "timed_steps": 20, "tokens_per_s": 8000.0,
           "tokens_per_s_gpu": 1000.0, "mt_per_hour": 28.8, "cost_per_mt": 1.9, "usd_per_node_hour": 55.04, "price_date": "2026-11-09",
           "peak_allocated_bytes": 7 << 30, "peak_reserved_bytes": 9 << 30}


class RehearsedAnswersTest(sweep_folder.SweepFolder):
    def setUp(self):
        super().setUp()
        self.grid = self.folder / "grid.yaml"
        self.grid.write_text(GRID)
        self.plan = [json.loads(line) for line in self.out("plan", self.grid, "--json", "--db", self.folder / "none.db").splitlines()]
        self.db = self.folder / "r.db"
        for name in ("layouts", "layouts.rehearsal"):
            rows = [{"trial": entry["trial"], "outcome": "ok", "reason": "", "metrics": {**METRICS, "tokens_per_s_gpu": 1000.0 + at},
                     "effective": {}} for at, entry in enumerate(self.plan[:3])]
            bench.store(BIN, self.db, name, rows + [{"trial": self.plan[3]["trial"], "outcome": "oom", "reason": "asked for 5 GB", "metrics": {}}])

    def run_sweep(self, *words, program=BIN / "sweep"):
        return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              cwd=self.folder, env={**os.environ, "XDG_CONFIG_HOME": str(self.folder), "SWEEP_SITE": str(self.folder / "no")})

    def out(self, *words):
        done = self.run_sweep(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def both(self, *words):
        """Standard output for the rehearsal and for the measured sweep; SWEEP among the words is the name."""
        return [self.out(*[name if word == "SWEEP" else word for word in words], "--db", self.db)
                for name in ("layouts.rehearsal", "layouts")]

    def pages(self, command, ending):
        page = self.folder / f"page{ending}"
        texts = []
        for name in ("layouts.rehearsal", "layouts"):
            self.out(*command, name, "-o", page, "--db", self.db)
            texts.append(page.read_text())
        return texts

    def says_so(self, texts, mark=NOTE):
        self.assertIn(mark, texts[0])
        self.assertNotIn(mark, texts[1])

    def test_one_that_is_alone_in_its_database_is_meant(self):
        self.db = self.folder / "alone.db"
        bench.store(BIN, self.db, "layouts.rehearsal", [{"trial": self.plan[0]["trial"], "outcome": "ok", "reason": "", "metrics": METRICS, "effective": {}}])
        for words in (["best"], ["status"], ["table", "batch"], ["explain", self.plan[0]["id"]]):
            self.assertIn(NOTE, self.out(*words, "--db", self.db))

    def test_a_command_of_which_no_rank_can_run_alone_is_refused_with_its_reason(self):
        self.grid.write_text("name: many\nworkload: {command: [mpirun, train.py], processes: per_node}\nbase: {hardware: h100-sxm-80gb, gpus_per_node: 8, nodes: 8}\n")
        plan = self.run_sweep("plan", self.grid)
        self.assertIn("not known before the first result", plan.stdout)
        done = self.run_sweep("run", self.grid, "--rehearse", "--db", self.folder / "many.db")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'mpirun'", done.stderr)
        self.assertNotIn("sweep plan", done.stderr)

    def test_text_for_people(self):
        trial = self.plan[0]["id"]
        for words in (["best", "SWEEP"], ["best", "SWEEP", "--yaml"], ["best", "SWEEP", "--by", "zero,tp"], ["status", "SWEEP"],
                      ["explain", trial, "SWEEP"], ["table", "batch", "SWEEP"], ["table", "scaling", "SWEEP", "--markdown"]):
            with self.subTest(words):
                self.says_so(self.both(*words))
        with self.subTest("compare"):
            self.says_so([self.out("compare", "layouts", "layouts.rehearsal", "--db", self.db),
                          self.out("compare", "layouts", "layouts", "--db", self.db)])

    def test_pages(self):
        for command, ending in ((["report"], ".html"), (["heatmap", "--rows", "tp", "--cols", "zero"], ".html"),
                                (["heatmap", "--rows", "tp", "--cols", "zero", "--title", "mine"], ".svg")):
            with self.subTest(command + [ending]):
                self.says_so(self.pages(command, ending))
        with self.subTest("heatmap.csv"):
            of_rehearsal, measured = self.pages(["heatmap", "--rows", "tp", "--cols", "zero"], ".csv")
            self.assertEqual({row["rehearsed"] for row in csv.DictReader(io.StringIO(of_rehearsal))}, {"1"})
            self.assertNotIn("rehearsed", csv.DictReader(io.StringIO(measured)).fieldnames)

    def test_answers_for_programs(self):
        trial = self.plan[0]["id"]
        for words in (["status", "SWEEP", "--json"], ["explain", trial, "SWEEP", "--json"]):
            with self.subTest(words):
                self.assertEqual([json.loads(text)["rehearsed"] for text in self.both(*words)], [True, False])
        for words in (["best", "SWEEP", "--json"], ["export", "json", "SWEEP"]):
            with self.subTest(words):
                self.assertEqual([{row["rehearsed"] for row in json.loads(text)} for text in self.both(*words)], [{True}, {False}])
        with self.subTest("export jsonl"):
            self.assertEqual([json.loads(text.splitlines()[0])["rehearsed"] for text in self.both("export", "jsonl", "SWEEP")], [True, False])
        with self.subTest("export csv"):
            self.assertEqual([next(csv.DictReader(io.StringIO(text)))["rehearsed"] for text in self.both("export", "csv", "SWEEP")],
                             ["true", "false"])
        with self.subTest("query"):
            found = json.loads(self.out("query", "select distinct sweep, rehearsed from results order by 1", "--json", "--db", self.db))
            self.assertEqual([row["rehearsed"] for row in found], [0, 1])
        with self.subTest("export github-benchmark"):
            self.says_so(self.both("export", "github-benchmark", "SWEEP"))
        with self.subTest("export bencher"):
            self.assertEqual([all(".rehearsal/" in name for name in json.loads(text)) for text in self.both("export", "bencher", "SWEEP")],
                             [True, False])
        with self.subTest("table --json"):
            self.assertEqual([[row.get("rehearsed") for row in json.loads(text)][0] for text in self.both("table", "batch", "SWEEP", "--json")],
                             [1, None])
        with self.subTest("compare --json"):
            rows = json.loads(self.out("compare", "layouts", "layouts.rehearsal", "--json", "--db", self.db))
            self.assertEqual({row["rehearsed"] for row in rows}, {"B"})

    def test_offline_files_of_trackers(self):
        for name, there in (("layouts.rehearsal", True), ("layouts", False)):
            folder = self.folder / f"wandb-{name}"
            self.out("export", "wandb", name, "--offline", folder, "--db", self.db)
            files = [file.read_bytes() for file in folder.rglob("*.wandb")]
            self.assertEqual(len(files), 4)
            self.assertEqual({b"\x52\x09rehearsed" in file for file in files}, {there})  # field 10 of the run, tags

    def test_nothing_takes_a_rehearsal_unasked(self):
        """The rehearsal is the latest sweep of the file, and is still not what an answer without a name is of."""
        self.assertIn("layouts", self.out("status", "--db", self.db))
        for words in (["best"], ["status"], ["table", "batch"]):
            self.assertNotIn(NOTE, self.out(*words, "--db", self.db), words)
        self.assertEqual({row["sweep"] for row in csv.DictReader(io.StringIO(self.out("export", "csv", "--db", self.db)))}, {"layouts"})

    def test_plan_shows_rehearsed_bytes(self):
        lines = [json.loads(line) for line in self.out("plan", self.grid, "--json", "--db", self.db).splitlines()]
        self.assertEqual([line["rehearsed_outcome"] for line in lines], ["ok", "ok", "ok", "oom"])
        self.assertEqual([line["rehearsed_allocated_bytes"] for line in lines], [7 << 30] * 3 + [None])
        self.assertEqual([line["rehearsed_reserved_bytes"] for line in lines], [9 << 30] * 3 + [None])
        table = list(csv.DictReader(io.StringIO(self.out("plan", self.grid, "--csv", "--db", self.db))))
        self.assertEqual([row["rehearsed_allocated_bytes"] for row in table], [str(7 << 30)] * 3 + [""])
        self.assertGreater(int(table[0]["predicted_bytes"]), 0)
        shown = self.out("plan", self.grid, "--list", "--db", self.db)
        self.assertIn("rehearsed_allocated [GiB]", shown)
        self.assertIn("4 of 4 admitted trials (3 ok, 1 oom)", shown)
        without = [json.loads(line) for line in self.out("plan", self.grid, "--json", "--db", self.folder / "none.db").splitlines()]
        self.assertEqual({line["rehearsed_allocated_bytes"] for line in without}, {None})

    def programs(self, name, rank):
        """A folder of programs whose sweep-rank is this shell line."""
        folder = self.folder / name / "bin"
        folder.mkdir(parents=True)
        for program in ("sweep", "sweep-agent"):
            shutil.copy(BIN / program, folder / program)
        (folder / "sweep-rank").write_text(f"#!/bin/sh\n{rank}\n")
        (folder / "sweep-rank").chmod(0o755)
        return folder

    def test_doctor_names_a_program_whose_answer_cannot_be_read(self):
        odd = self.programs("odd", """echo '{"version": 5, "libtorch": "2"}'""")
        told = json.loads(self.run_sweep("doctor", "--json", "--db", self.folder / "x.db", program=odd / "sweep").stdout)
        finding, = [each for each in told["findings"] if each["what"] == "sweep-rank"]
        self.assertEqual(finding["health"], "bad")
        self.assertIn("'version'", finding["detail"])

    def test_doctor_and_run_say_the_same_of_a_machine_that_cannot_rehearse(self):
        """Programs without phantom libraries beside them. Nothing is stored."""
        bare = self.programs("bare", "exit 1")
        told = json.loads(self.run_sweep("doctor", "--json", "--db", self.folder / "x.db", program=bare / "sweep").stdout)
        finding, = [each for each in told["findings"] if each["what"] == "rehearsals"]
        self.assertEqual(finding["health"], "warning")
        self.assertIn("libsweep_phantom.so", finding["detail"])
        done = self.run_sweep("run", self.grid, "--rehearse", "--db", self.folder / "x.db", program=bare / "sweep")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(finding["detail"], done.stderr)
        self.assertFalse((self.folder / "x.db").exists())

    def test_a_price_carries_its_date(self):
        rows = json.loads(self.out("export", "json", "layouts", "--db", self.db))
        self.assertEqual([row["price_date"] for row in rows if row["usd_per_node_hour"]], ["2026-11-09"] * 3)
        table = csv.DictReader(io.StringIO(self.out("export", "csv", "layouts", "--db", self.db)))
        self.assertEqual([row["price_date"] for row in table if row["usd_per_node_hour"]], ["2026-11-09"] * 3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
