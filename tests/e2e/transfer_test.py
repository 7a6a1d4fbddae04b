#!/usr/bin/env python3
"""transfer_test.py BIN_DIR: `sweep compare --transfer` over two imported sweeps, its figures computed again here: by scipy where it is installed."""
import csv
import json
import pathlib
import random
import sys
import unittest

import sweep_folder

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
SAME = ["--set", "hardware=cpu", "--set", "seq_len=128", "--set", "precision=fp32", "--leave-rest"]


def spearman(a, b):
    try:
        from scipy.stats import spearmanr
        return float(spearmanr(a, b).statistic)
    except ImportError:
        def ranks(values):
            return [sum(1 for x in values if x < v) + (sum(1 for x in values if x == v) + 1) / 2 for v in values]
        x, y, mean = ranks(a), ranks(b), (len(a) + 1) / 2
        return sum((p - mean) * (q - mean) for p, q in zip(x, y)) / \
            (sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)) ** 0.5


class TransferTest(sweep_folder.SweepFolder):
    bin = BIN

    def setUp(self):
        super().setUp()
        dice = random.Random(5)
        self.a, self.b = {}, {}
        for dp in (1, 2, 4):
            for micro in (1, 2, 4, 8):
                for recompute in ("none", "full"):
                    key = (dp, micro, recompute)
                    self.a[key] = dice.randrange(20, 40)  # with ties
                    self.b[key] = self.a[key] + dice.randrange(30)
        for name, table in (("a", self.a), ("b", self.b)):
            self.store(name, table)

    def store(self, name, table, oom=()):
        file = self.folder / f"{name}.csv"
        with open(file, "w", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(["model", "nodes", "gpus_per_node", "dp", "mbs", "recompute", "status", "tok_s_gpu"])
            for (dp, micro, recompute), rate in table.items():
                failed = (dp, micro, recompute) in oom
                rows.writerow(["m", dp, 1, dp, micro, recompute, "oom" if failed else "ok", "" if failed else rate])
        self.sweep("import", file, "--db", self.folder / "r.db", "--sweep", name, *SAME)

    def transfer(self, *words, code=0):
        return self.sweep("compare", "--transfer", *words, "--db", self.folder / "r.db", code=code)

    def test_figures(self):
        found = json.loads(self.transfer("a", "b", "--json"))
        self.assertEqual(len(found["cells"]), 3)
        for cell in found["cells"]:
            keys = [key for key in self.a if key[0] == cell["cell"]["nodes"]]
            self.assertEqual((cell["cell"]["model"], cell["measured"]), ("m", 8))
            self.assertAlmostEqual(cell["spearman"], spearman([self.a[k] for k in keys], [self.b[k] for k in keys]), places=12)
            choice = max(keys, key=lambda key: self.a[key])  # the first of equal ones
            best = max(self.b[key] for key in keys)
            self.assertAlmostEqual(cell["regret"], 1 - self.b[choice] / best, places=12)
        self.assertEqual({each["axis"] for each in found["axes"]}, {"micro_batch_size", "recompute"})
        self.assertEqual(len(found["configurations"]), 24)

    def test_one_cell_of_all(self):
        found = json.loads(self.transfer("a", "b", "--json", "--by", "model"))
        self.assertAlmostEqual(found["cells"][0]["spearman"], spearman(list(self.a.values()), list(self.b.values())), places=12)
        same = json.loads(self.transfer("a", "a", "--json", "--by", "model"))
        self.assertEqual((same["cells"][0]["spearman"], same["cells"][0]["regret"]), (1, 0))

    def test_what_fits(self):
        keys = list(self.a)
        self.store("c", self.b, oom=keys[:3])
        fits = json.loads(self.transfer("a", "c", "--json"))["fits"]
        self.assertEqual(fits, {"both": 21, "only_a": 3, "only_b": 0, "neither": 0, "unknown": 0})

    def test_two_parts_of_one_sweep(self):
        found = json.loads(self.transfer("a", "a", "--json", "--by", "model", "--only-a", "nodes=1", "--only-b", "nodes=2", "--match",
                                         "micro_batch_size,recompute"))
        keys = [key for key in self.a if key[0] == 1]
        self.assertAlmostEqual(found["cells"][0]["spearman"], spearman([self.a[k] for k in keys], [self.a[(2, *k[1:])] for k in keys]), places=12)
        self.transfer("a", "a", "--only-a", "nodes=1", "--only-b", "nodes=2", code=2)

    def test_forms(self):
        for ending, begin in ((".svg", b"<svg"), (".png", b"\x89PNG")):
            self.transfer("a", "b", "-o", self.folder / f"t{ending}")
            self.assertTrue((self.folder / f"t{ending}").read_bytes().startswith(begin))
        rows = list(csv.DictReader(self.transfer("a", "b", "--csv").splitlines()))
        self.assertEqual(len(rows), 24)
        self.transfer("a", "b", "-o", self.folder / "t.pdf", code=2)
        self.transfer("a", "b", "--metric", "mistake", code=2)
        self.sweep("compare", "a", "b", "--by", "model", "--db", self.folder / "r.db", code=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
