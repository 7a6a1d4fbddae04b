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
import kernels  # noqa: E402  (found by the line above)
import steps  # noqa: E402

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


class Kernels(unittest.TestCase):
    def records(self, run):
        """What `run(check)` records, on a machine whose trials write this table; (met, values) of each row."""
        check = mock.Mock()
        check.machine = mock.Mock(phantom=False, hardware="h100-sxm-80gb")
        check.base = lambda seq_len, **more: dict(hardware="h100-sxm-80gb", gpus_per_node=1, seq_len=seq_len, **more)
        with tempfile.TemporaryDirectory() as folder:
            check.sweeps.folder = pathlib.Path(folder)
            run(check)
        return [(call.args[0], call.kwargs) for call in check.record.row.call_args_list], check.record.note.call_args_list

    def test_the_longest_kernel_comes_first_with_its_share_of_the_bandwidth(self):
        def trial(name, text, **variables):
            table = [dict(kernel="rope", type="BFloat16", launches=10, ms=1.0, bytes=1675000000),
                     dict(kernel="swiglu", type="BFloat16", launches=4, ms=2.0, bytes=6700000000)]
            pathlib.Path(variables["SWEEP_KERNEL_TIMES"]).write_text(json.dumps(dict(kernels=table)))
            return [dict(outcome="ok")]

        def run(check):
            check.on_gpu = trial
            kernels.table(check)
        rows, _ = self.records(run)
        self.assertEqual([values["kernel"] for _, values in rows], ["swiglu", "rope", "swiglu", "rope"])
        self.assertAlmostEqual(rows[0][1]["bandwidth_share"], 1.0)
        self.assertAlmostEqual(rows[1][1]["bandwidth_share"], 0.5)
        self.assertAlmostEqual(rows[0][1]["us_each"], 500)

    def test_a_trial_that_times_nothing_is_not_met(self):
        def run(check):
            check.on_gpu = lambda *_, **__: [dict(outcome="oom")]
            kernels.table(check)
        rows, _ = self.records(run)
        self.assertEqual([(met, values["outcome"]) for met, values in rows], [(False, "oom"), (False, "oom")])

    def sanitized(self, summary, outcomes=("ok", "ok")):
        def trial(name, text, under, **_):
            pathlib.Path(under[under.index("--log-file") + 1]).write_text(summary)
            return [dict(outcome=outcome) for outcome in outcomes]

        def run(check):
            check.on_gpu = trial
            with mock.patch.object(kernels.shutil, "which", lambda _: "/usr/bin/compute-sanitizer"):
                kernels.sanitized(check)
        rows, _ = self.records(run)
        return [(met, values["tool"], values["errors"]) for met, values in rows]

    def test_errors_of_all_processes_count_and_a_missing_summary_proves_nothing(self):
        clean = "========= ERROR SUMMARY: 0 errors\n"
        self.assertEqual(self.sanitized(clean * 2), [(True, "memcheck", 0), (True, "racecheck", 0)])
        self.assertEqual(self.sanitized(clean + "========= ERROR SUMMARY: 3 errors\n")[0], (False, "memcheck", 3))
        self.assertEqual(self.sanitized("========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n")[1], (False, "racecheck", 2))
        self.assertEqual(self.sanitized("")[0], (False, "memcheck", None))
        self.assertEqual(self.sanitized(clean, ("ok", "crash"))[0], (False, "memcheck", 0))

    def test_without_the_tool_it_says_so(self):
        def run(check):
            with mock.patch.object(kernels.shutil, "which", lambda _: None):
                kernels.sanitized(check)
        rows, notes = self.records(run)
        self.assertEqual(rows, [])
        self.assertIn("not installed", notes[0].args[0])


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
