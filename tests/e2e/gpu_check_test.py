#!/usr/bin/env python3
"""gpu_check_test.py SOURCE_DIR: what gpu_check takes for right and wrong, without a GPU and without a program."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

SCRIPTS = pathlib.Path(sys.argv[1]).resolve() / "scripts"
sys.path.insert(0, str(SCRIPTS / "gpu"))
import grids  # noqa: E402  (found by the line above)
import kernels  # noqa: E402
import machine  # noqa: E402
import records  # noqa: E402
import runs  # noqa: E402
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


def check_of(**more):
    """A Check of one H100, whose sweeps are mocks and whose record is in no file."""
    here = mock.Mock(phantom=False, hardware="h100-sxm-80gb", gpus=[{}], small=lambda: False)
    sweeps = mock.Mock()
    sweeps.rows.return_value = []
    check = steps.Check(here, sweeps, records.Record(mock.Mock(steps={}), steps.STEPS[0], here, []), 0.02)
    vars(check).update(more)
    return check


def rows_of(check):
    """(met, values) of each row."""
    return [(row["met"], row) for row in check.record.content["rows"]]


def ended(outcome="ok", **values):
    """A trial's row of results."""
    axes = dict(model="dense", precision="bf16", attention="auto", cuda_graph=0)
    return {**axes, "trial": "t", "reason": None, "outcome": outcome, "loss_first": 6.9579, "loss_last": 6.9338, **values}


class Failures(unittest.TestCase):
    def test_what_fails_at_one_trial_is_that_trials_row(self):
        check = check_of()
        judge = check.each(lambda row: abs(row["peak"]))
        judge(ended(peak=None))
        judge(ended(peak=1))
        (met, values), = rows_of(check)
        self.assertIs(met, False)
        self.assertIn("TypeError", values["reason"])

    def test_a_part_that_fails_leaves_the_others(self):
        for failure in (RuntimeError("selftest exited 2"), json.JSONDecodeError("no JSON", "", 0)):
            check = check_of()
            check.sweeps.answer.side_effect = failure
            check.sweeps.begin.return_value = mock.Mock(), mock.Mock()
            check.sweeps.wait.side_effect = lambda process, db, each: each(ended())
            check.sweeps.run.side_effect = lambda name, text, judge, **_: judge(ended())
            steps.parity(check)
            self.assertEqual([met for met, _ in rows_of(check)], [False, True, True], failure)

    def test_without_the_cpus_trials_the_gpus_are_shown_and_not_met(self):
        check = check_of()
        check.sweeps.answer.return_value = json.dumps({"strategies": []})
        check.sweeps.begin.return_value = mock.Mock(), mock.Mock()
        check.sweeps.wait.side_effect = RuntimeError("sweep run exited 3")
        check.sweeps.run.side_effect = lambda name, text, judge, **_: judge(ended())
        steps.parity(check)
        self.assertEqual([(met, values.get("its_outcome")) for met, values in rows_of(check)], [(False, None)] * 4)

    def test_without_rehearsals_the_gpus_trials_are_still_shown(self):
        check = check_of()
        check.machine.phantom_of_this = lambda: {}

        def run(name, text, judge=None, **_):
            if name == "bytes-phantom":
                raise RuntimeError("sweep run exited 3")
            judge(ended())
        check.sweeps.run.side_effect = run
        steps.on_both(check, "bytes", "")
        self.assertEqual([(met, values["outcome"]) for met, values in rows_of(check)], [(False, "failed"), (False, "ok")])

    def test_a_part_that_takes_all_the_time_ends_the_step(self):
        check = check_of()
        check.sweeps.answer.side_effect = runs.OutOfTime
        check.sweeps.begin.return_value = mock.Mock(), mock.Mock()
        self.assertRaises(runs.OutOfTime, steps.parity, check)

    def test_a_program_that_outlasts_the_step_is_out_of_time(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "waits").symlink_to("/bin/sleep")
            here = mock.Mock(bin=pathlib.Path(folder), environment={})
            with runs.Sweeps(here, 0.1, None) as sweeps:
                self.assertRaises(runs.OutOfTime, sweeps.program, "waits", "60", seconds=60)
            with runs.Sweeps(here, 60, None) as sweeps:
                self.assertRaises(RuntimeError, sweeps.program, "waits", "60", seconds=0.1)


class GpuFirst(unittest.TestCase):
    """The CPU's trials run beside the GPU's, which wait for none of them."""
    def run_with(self, *cpu):
        """(rows when the GPU's trial has ended, at the end); cpu: what has ended of the CPU's by then."""
        check, early = check_of(), []
        check.sweeps.answer.return_value = json.dumps({"strategies": []})
        check.sweeps.begin.return_value = mock.Mock(), mock.Mock()
        check.sweeps.rows.return_value = list(cpu)

        def on_gpu(name, text, judge, **_):
            if name == "parity":
                judge(ended())
                early.extend([met, row["its_outcome"]] for met, row in rows_of(check))
        check.sweeps.run.side_effect = on_gpu
        check.sweeps.wait.side_effect = lambda process, db, each: each(ended())
        steps.parity(check)
        return early, [[met, row["its_outcome"]] for met, row in rows_of(check)]

    def test_a_row_is_there_before_the_cpus_trial_has_ended(self):
        self.assertEqual(self.run_with(), ([[None, "not ended"]], [[True, "ok"]]))

    def test_it_is_complete_at_once_where_that_was_earlier(self):
        self.assertEqual(self.run_with(ended()), ([[True, "ok"]], [[True, "ok"]]))


class OnlyOnAGpu(unittest.TestCase):
    def judged(self, row, *others):
        check = check_of()
        check.sweeps.wait.side_effect = lambda process, db, each: [each(one) for one in ({**row, "outcome": "unsupported"}, *others)]
        judge = steps.Parity(check, mock.Mock(), mock.Mock())
        for each in (row, *others):
            judge.gpu_ended(each)
        judge.finish("parity")
        return {values["axes"].get("attention", values["axes"]["precision"]): (met, values["beside"]) for met, values in rows_of(check)}

    def test_it_is_judged_by_the_nearest_trial_of_the_gpu(self):
        for loss, met in ((6.9339, True), (6.9579, False)):
            got = self.judged(ended(attention="cudnn", loss_last=loss), ended())
            self.assertEqual(got, {"cudnn": (met, "the nearest trial of the GPU"), "bf16": (True, "CPU")})
        self.assertTrue(self.judged(ended(precision="fp8"), ended(precision="bf16_master"))["fp8"][0])

    def test_without_that_trial_nothing_is_proved(self):
        self.assertFalse(self.judged(ended(cuda_graph=1, precision="bf16_mixed"))["bf16_mixed"][0])

    def test_each_has_such_a_trial(self):
        """Of the points that the CPU does not run."""
        points = [{"model": "dense", "attention": "auto", **point, "cuda_graph": "cuda_graph" in point} for point in grids.PARITY]
        keys = {steps.key_of(point) for point in points}
        self.assertEqual([point for point in points if steps.nearest(point) and steps.nearest(point) not in keys], [])


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.out = pathlib.Path(temporary.name) / "out"
        self.here = mock.Mock(phantom=False, hardware="h100-sxm-80gb", gpus=[])

    def record(self, number):
        return records.Record(records.Folder(self.out), steps.STEPS[number - 1], self.here, [])

    def test_all_steps_are_in_three_files(self):
        for number in (2, 1):
            record = self.record(number)
            record.row(True, number=number)
            record.close("done")
        failed = self.out.parent / "rank_00000.log"
        failed.write_bytes(b"begin" + bytes(records.MOST_OF_A_LOG - 3) + b"end")
        record.keep(self.out.parent, [failed])
        record.keep(self.out.parent, [failed])
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), ["gpu-check.json", "gpu-check.md", "gpu-check.tar"])
        found = json.loads((self.out / "gpu-check.json").read_text())
        self.assertEqual([(step["step"], step["met"], step["rows"][0]["number"]) for step in found], [(1, True, 1), (2, True, 2)])
        with tarfile.open(self.out / "gpu-check.tar") as tar:
            self.assertEqual(tar.getnames(), ["1-trial/rank_00000.log"] * 2)
            file = tar.extractfile("1-trial/rank_00000.log")
            assert file
            kept = file.read()
        self.assertEqual((len(kept), kept[:1], kept[-3:]), (records.MOST_OF_A_LOG, b"\0", b"end"))

    def test_what_would_be_too_much_is_left_out(self):
        big, small = self.out.parent / "big.db", self.out.parent / "small.db"
        big.write_bytes(bytes(records.MOST_BYTES))
        small.write_bytes(b"rows")
        self.record(1).keep(self.out.parent, [big, small])
        with tarfile.open(self.out / "gpu-check.tar") as tar:
            self.assertEqual(tar.getnames(), ["1-trial/small.db"])


class Gpus(unittest.TestCase):
    def listed(self, visible, *rows):
        """(GPUs, words) of nvidia-smi, which is given CUDA_VISIBLE_DEVICES and says these rows."""
        done = subprocess.CompletedProcess([], 0, "\n".join(rows), "")
        environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        with mock.patch.dict(os.environ, environment, clear=True), mock.patch.object(machine.subprocess, "run", return_value=done) as run:
            return machine.gpus(), run.call_args.args[0]

    def test_only_the_visible_ones_are_asked_for(self):
        row = "NVIDIA H200, 580.65, 143771, 4, 9.0, 510"
        gpus, words = self.listed("3,GPU-1b2c", row, row)
        self.assertEqual((len(gpus), gpus[0]["memory_bytes"], words[1:3]), (2, 143771 << 20, ["-i", "3,GPU-1b2c"]))
        for visible in (None, "", "MIG-1b2c"):
            self.assertNotIn("-i", self.listed(visible, row)[1])

    def test_one_whose_memory_is_not_known_is_left_out(self):
        self.assertEqual(self.listed(None, "NVIDIA GB10, 580.65, [N/A], [N/A], 12.1, [N/A]")[0], [])

    def test_a_name_of_the_driver_is_one_of_the_catalogue(self):
        for name, hardware in (("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"), ("NVIDIA H100 NVL", "h100-sxm-96gb"), ("NVIDIA L40S", None)):
            with mock.patch.object(machine, "gpus", lambda of=name: [dict(name=of)]):
                self.assertEqual(machine.Machine(pathlib.Path("/none"), None, False).hardware, hardware)


class Phantom(unittest.TestCase):
    def test_it_has_the_memory_that_cuda_has(self):
        gpu = dict(name="NVIDIA H100 80GB HBM3", memory_bytes=85_520_809_984, reserved_bytes=580 << 20)
        for usable, memory in ((84_900_000_000, 84_900_000_000), (None, gpu["memory_bytes"] - gpu["reserved_bytes"])):
            with mock.patch.object(machine, "gpus", lambda: [gpu]), mock.patch.object(machine, "usable_bytes", lambda of=usable: of):
                self.assertEqual(machine.Machine(pathlib.Path("/none"), None, False).phantom_of_this()["memory_bytes"], memory)


class Kernels(unittest.TestCase):
    def records(self, run):
        """What `run(check)` records, on a machine whose trials write this table; (met, values) of each row."""
        check = check_of()
        with tempfile.TemporaryDirectory() as folder:
            check.sweeps.folder = pathlib.Path(folder)
            run(check)
        return rows_of(check)

    def test_the_longest_kernel_comes_first_with_its_share_of_the_bandwidth(self):
        def trial(name, text, **variables):
            table = [dict(kernel="rope", type="BFloat16", launches=10, ms=1.0, bytes=1675000000, best_ms=0.1, best_bytes=167500000),
                     dict(kernel="swiglu", type="BFloat16", launches=4, ms=2.0, bytes=6700000000, best_ms=0.5, best_bytes=1675000000)]
            pathlib.Path(variables["SWEEP_KERNEL_TIMES"]).write_text(json.dumps(dict(kernels=table)))
            return [dict(outcome="ok")]

        def run(check):
            check.on_gpu = trial
            kernels.table(check)
        rows = self.records(run)
        self.assertEqual([values["kernel"] for _, values in rows], ["swiglu", "rope", "swiglu", "rope"])
        self.assertAlmostEqual(rows[0][1]["bandwidth_share"], 1.0)
        self.assertAlmostEqual(rows[1][1]["bandwidth_share"], 0.5)
        self.assertAlmostEqual(rows[0][1]["us_each"], 500)

    def test_a_trial_that_times_nothing_is_not_met(self):
        def run(check):
            check.on_gpu = lambda *_, **__: [dict(outcome="oom")]
            kernels.table(check)
        rows = self.records(run)
        self.assertEqual([(met, values["outcome"]) for met, values in rows], [(False, "oom"), (False, "oom")])

    def sanitized(self, summary, outcomes=("ok", "ok")):
        def trial(name, text, under, **_):
            pathlib.Path(under[under.index("--log-file") + 1]).write_text(summary)
            return [dict(outcome=outcome) for outcome in outcomes]

        def run(check):
            check.on_gpu = trial
            with mock.patch.object(kernels.shutil, "which", lambda _: "/usr/bin/compute-sanitizer"):
                kernels.sanitized(check)
        rows = self.records(run)
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
        self.assertEqual([(met, values["outcome"]) for met, values in self.records(run)], [(None, "not run")])


class Surroundings(unittest.TestCase):
    def run_on(self, *lacking):
        """Exit code on a machine that lacks these, of a step that finds all as expected."""
        facts = [dict(what=what, ok=what not in lacking, found="", do="") for what in ("driver", "memory", "host", "/dev/shm")]
        here = mock.Mock(gpus=[{}], phantom=False, hardware="h100-sxm-80gb", surroundings=lambda: facts)
        with tempfile.TemporaryDirectory() as out, mock.patch.object(gpu_check.machine, "Machine", lambda *_: here), \
                mock.patch.object(gpu_check, "run_step", lambda *_: True), \
                mock.patch.object(sys, "argv", ["gpu_check", "--step", "1", "--out", out]):
            return gpu_check.main()

    def seconds(self, *words):
        """The time that each step is given, (its own, what is left of all), where none takes any."""
        given = []
        here = mock.Mock(gpus=[{}], phantom=False, hardware="h100-sxm-80gb", surroundings=lambda: [])
        with tempfile.TemporaryDirectory() as out, mock.patch.object(gpu_check.machine, "Machine", lambda *_: here), \
                mock.patch.object(gpu_check, "run_step", lambda _, options, __, left, *___: given.append((options.seconds, left)) or True), \
                mock.patch.object(gpu_check.time, "monotonic", lambda: 1000), mock.patch.object(sys, "argv", ["gpu_check", "--out", out, *words]):
            gpu_check.main()
        return given

    def test_all_steps_together_have_a_limit(self):
        self.assertEqual(self.seconds("--step", "4"), [(540, 570)])
        self.assertEqual(self.seconds("--total", "60"), [(240, 60)] * len(steps.STEPS))

    def test_what_has_no_time_left_is_said_to_be_skipped(self):
        here = mock.Mock(phantom=False, hardware="h100-sxm-80gb", gpus=[])
        with tempfile.TemporaryDirectory() as out:
            folder = records.Folder(pathlib.Path(out))
            self.assertFalse(gpu_check.run_step(steps.STEPS[1], mock.Mock(), folder, 3.0, here, []))
            self.assertEqual(folder.steps[2]["state"], "skipped")

    def test_little_memory_is_a_warning(self):
        self.assertEqual(self.run_on("host", "/dev/shm", "memory"), 0)

    def test_an_old_driver_ends_it(self):
        self.assertEqual(self.run_on("driver"), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
