#!/usr/bin/env python3
"""gpu_check_test.py SOURCE_DIR: what gpu_check takes for right and wrong, without a GPU and without a program."""
import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

SCRIPTS = pathlib.Path(sys.argv[1]).resolve() / "scripts"
sys.path.insert(0, str(SCRIPTS / "gpu"))
import steps  # noqa: E402  (found by the line above)

loader = importlib.machinery.SourceFileLoader("gpu_check", str(SCRIPTS / "gpu_check"))
spec = importlib.util.spec_from_loader(loader.name, loader)
assert spec
gpu_check = importlib.util.module_from_spec(spec)
loader.exec_module(gpu_check)

# Measured on the CPU: the model, batches and steps of `parity`.
TRAINED = {"fp32": (6.95794, 6.78805), "bf16": (6.95794, 6.93383), "bf16_master": (6.95794, 6.78816)}
OTHER_PATH = {"fp32": (6.95794, 6.78805), "bf16": (6.95794, 6.93392), "bf16_master": (6.95794, 6.78811)}


def row(precision, losses):
    return dict(precision=precision, loss_first=losses[0], loss_last=losses[1])


class Parity(unittest.TestCase):
    def test_other_rounding_is_the_same_training(self):
        for precision, losses in TRAINED.items():
            self.assertTrue(steps.trains_alike(row(precision, OTHER_PATH[precision]), row(precision, losses)), precision)

    def test_a_backward_of_zeros_is_seen(self):
        """Adam moves nothing without gradients: the loss stays where it was, 0.3 % from the right one in bf16."""
        for precision, losses in TRAINED.items():
            dead = (losses[0], losses[0])
            self.assertFalse(steps.trains_alike(row(precision, dead), row(precision, losses)), precision)

    def test_a_tenth_of_the_gradients_missing_is_seen(self):
        for precision, (first, last) in TRAINED.items():
            self.assertFalse(steps.trains_alike(row(precision, (first, first - 0.9 * (first - last))), row(precision, (first, last))), precision)

    def test_what_was_not_trained_proves_nothing(self):
        self.assertFalse(steps.trains_alike(row("bf16", (0.0, 0.0)), row("bf16", TRAINED["bf16"])))
        self.assertFalse(steps.trains_alike(row("bf16", (None, None)), row("bf16", TRAINED["bf16"])))
        self.assertFalse(steps.trains_alike(row("bf16", (6.9, 6.9)), row("bf16", (6.9, 6.9))))


class Gradients(unittest.TestCase):
    def rows(self, phantom, *strategies):
        """What `gradients` records: (met, strategy)."""
        check = mock.Mock()
        check.machine = mock.Mock(phantom=phantom, hardware="h100-sxm-80gb", gpus=[{}])
        check.sweeps.answer.return_value = json.dumps({"strategies": list(strategies)})
        steps.gradients(check)
        return [(call.args[0], call.kwargs["strategy"]) for call in check.record.row.call_args_list]

    def test_what_failed_is_not_met_and_what_needs_more_gpus_is_no_row(self):
        good = dict(strategy="one_rank", result="passed", loss=1e-6, gradient=2e-6, why="")
        crashed = dict(strategy="one_rank_bf16", result="failed", why="crash")
        few = dict(strategy="tp", result="not run", why="it needs 2 ranks on each of 1 nodes; 1 are offered")
        self.assertEqual(self.rows(False, good, crashed, few), [(True, "one_rank"), (False, "one_rank_bf16")])

    def test_phantoms_compute_nothing_to_compare(self):
        self.assertEqual(self.rows(True), [])


class Surroundings(unittest.TestCase):
    def run_on(self, *lacking):
        """Exit code on a machine that lacks these, of a step that finds all as expected."""
        facts = [dict(what=what, ok=what not in lacking, found="", do="") for what in ("driver", "memory", "host", "/dev/shm")]
        here = mock.Mock(gpus=[{}], phantom=False, hardware="h100-sxm-80gb", surroundings=lambda: facts)
        with tempfile.TemporaryDirectory() as out, mock.patch.object(gpu_check.machine, "Machine", lambda *_: here), \
                mock.patch.object(gpu_check, "run_step", lambda *_: True), \
                mock.patch.object(sys, "argv", ["gpu_check", "--step", "1", "--out", out]):
            return gpu_check.main()

    def test_little_memory_is_a_warning(self):
        self.assertEqual(self.run_on("host", "/dev/shm", "memory"), 0)

    def test_an_old_driver_ends_it(self):
        self.assertEqual(self.run_on("driver"), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
