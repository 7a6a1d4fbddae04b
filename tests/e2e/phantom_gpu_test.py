#!/usr/bin/env python3
"""phantom_gpu_test.py BIN_DIR PHANTOM_DIR: the GPU half without a GPU: LibTorch's own CUDA code over the preloaded library
of phantom GPUs. Each case names the finding (docs/gpu-findings.md) that it shows mended."""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time
import unittest

import database
import sweep_folder

BIN, PHANTOM = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()

GRID = """name: phantom
model: {{family: llama, layers: 4, hidden_size: 1024, heads: 8, kv_heads: 2, intermediate_size: 2816, vocab_size: 8192}}
base: {{hardware: {hardware}, seq_len: 512, precision: {precision}, global_batch_size: 4, micro_batch_size: 1}}
grid: {grid}
measure: {{warmup_steps: 1, steps: {steps}}}
limits: {{hang_seconds: {hang}, retries_crash: 0, retries_infra: 0}}
"""
COLUMNS = ("trial", "outcome", "oom_kind", "phase", "oom_part", "oom_asked_bytes", "ooms", "cause_rank", "reason", "util_mean", "sm_clock_mhz", "exposed_comm_ms",
           "step_ms", "step_launches", "step_host_syncs", "step_host_ms", "pinned_bytes", "peak_allocated_bytes", "peak_reserved_bytes")
# Another program on GPU 0: when it is told, it takes 2 GiB there, says so and waits for its end.
STRANGER = """import ctypes, sys
cuda = ctypes.CDLL(None)
at = ctypes.c_void_p()
print("ready", flush=True)
sys.stdin.readline()
assert cuda.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(2 << 30)) == 0
print("holds", flush=True)
sys.stdin.read()
"""
LATE_MODULE = 9  # that of the optimizer: memory of the backward lies in the cache then
UUID = """import ctypes, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(int(sys.argv[1]), ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetUUID(device, text, 96) == 0
print(text.value.decode())
"""


class PhantomGpuTest(sweep_folder.SweepFolder):
    def environment(self, gpus, device, faults):
        more = {"SWEEP_PHANTOM": json.dumps(device), "SWEEP_PHANTOM_GPUS": str(gpus), "SWEEP_PHANTOM_NODE": self.folder.name,
                "LD_LIBRARY_PATH": str(PHANTOM), "LD_PRELOAD": str(PHANTOM / "libsweep_phantom.so")}
        if faults:
            more["SWEEP_PHANTOM_FAULTS"] = faults
        return {**os.environ, **more, "SWEEP_SITE": str(self.folder / "no-site.yaml"), "XDG_STATE_HOME": str(self.folder / "state"), "OMP_NUM_THREADS": "1"}

    def run_grid(self, grid, gpus=2, hardware="h100-sxm-80gb", device=None, faults="", precision="bf16", bin_dir=BIN, rehearse=True):
        """One dictionary of COLUMNS a trial, in the order of the grid."""
        file, db = self.folder / "grid.yaml", self.folder / "grid.db"
        text = GRID.format(hardware=hardware, grid=grid, precision=precision, steps=3, hang=10 if rehearse else 120)
        if not rehearse:
            text = text.replace("seq_len: 512", "seq_len: 8")  # a processor computes what phantoms do not
        file.write_text(text)
        done = subprocess.run([bin_dir / "sweep", "run", file, "--db", db, *(["--rehearse"] if rehearse else [])], env=self.environment(gpus, device or {}, faults),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400)
        self.words = done.stdout + done.stderr
        database.check(db)
        rows = database.rows(db, f"select {', '.join(COLUMNS)} from results where outcome <> 'pruned'")
        self.assertTrue(rows, self.words)
        return [dict(zip(COLUMNS, row)) for row in rows]

    def only(self, *words, **more):
        trials = self.run_grid(*words, **more)
        self.assertEqual(len(trials), 1, trials)
        return trials[0]

    def assert_oom(self, trial, part, kind="device"):
        self.assertEqual((trial["outcome"], trial["oom_kind"], trial["oom_part"]), ("oom", kind, part), trial)

    def test_layouts_run(self):
        """G1: the allocator is asked after CUDA is initialised."""
        trials = self.run_grid("{gpus_per_node: [1, 2], tp: [1, 2], pp: [1, 2], cp: [1, 2], zero: [0, 3]}\n"
                               "where: [tp * pp * cp <= gpus_per_node, zero == 0 or tp * pp * cp < gpus_per_node]")
        self.assertEqual(len(trials), 6, trials)
        self.assertEqual({trial["outcome"] for trial in trials}, {"ok"}, trials)
        self.assertEqual([trial["util_mean"] for trial in trials if (trial["util_mean"] or 0) > 100], [], trials)

    def test_out_of_memory_in_the_allocator(self):
        """G7: part, phase and size."""
        trial = self.only("{gpus_per_node: [2]}", device={"memory_bytes": 1040 << 20})
        self.assertEqual((trial["outcome"], trial["oom_kind"]), ("oom", "device"), trial)
        self.assertIn(trial["oom_part"], ("build", "forward", "backward", "optimizer"), trial)
        self.assertGreater(trial["oom_asked_bytes"], 0)

    def test_the_size_refused_first_is_kept(self):
        """G7: what is asked after a failure may be refused memory too."""
        trial = self.only("{gpus_per_node: [4]}", gpus=4, faults="malloc_oom:at=26:device=1")
        self.assert_oom(trial, "forward")
        self.assertEqual((trial["oom_asked_bytes"], trial["cause_rank"]), (2 << 20, 1), trial)
        self.assertEqual(trial["ooms"], 1, trial)  # later requests are not counted

    def test_out_of_memory_while_the_peers_wait(self):
        """G2: the peers wait in NCCL for a rank that failed, and an abort of its communicators would not return."""
        trial = self.only("{gpus_per_node: [4]}", gpus=4, faults="cublas_oom:at=200:device=1;abort_hang")
        self.assert_oom(trial, "backward")
        self.assertEqual((trial["phase"], trial["cause_rank"]), ("step", 1), trial)

    def test_time_spent_waiting_for_a_slow_link(self):
        """G9: the stream's time, not the host's: what a slow link adds to the step is communication waited for. ZeRO-2 and 3 wait within
        forward and backward."""
        for zero in (0, 2, 3):
            with self.subTest(zero=zero):
                steps = []
                for faults in ("", "slow_link:factor=50"):
                    steps.append(self.only(f"{{gpus_per_node: [2], zero: [{zero}]}}", faults=faults))
                    (self.folder / "grid.db").unlink()
                fast, slow = steps
                added = slow["step_ms"] - fast["step_ms"]
                self.assertGreater(added, 1, steps)
                self.assertAlmostEqual(slow["exposed_comm_ms"] - fast["exposed_comm_ms"], added, delta=0.1 * added, msg=steps)

    def test_what_a_step_launches_is_counted(self):
        """Metrics of a rehearsal; the same ones of a trial on the processor are not known."""
        one, two = self.run_grid("{gpus_per_node: [1, 2]}")
        for trial in (one, two):
            self.assertGreater(trial["step_launches"], 100, trial)
            self.assertGreaterEqual(trial["step_host_syncs"], 1, trial)
            self.assertGreater(trial["step_host_ms"], 0.004 * trial["step_launches"], trial)  # 4 us a launch
            self.assertTrue(0 < trial["util_mean"] <= 100, trial)
        (self.folder / "grid.db").unlink()
        cpu = self.only("{gpus_per_node: [1]}", hardware="cpu", precision="fp32", rehearse=False)
        self.assertEqual([cpu[name] for name in ("step_launches", "step_host_syncs", "step_host_ms", "pinned_bytes")], [None] * 4, cpu)

    def test_what_offloading_pins_is_counted(self):
        """Large pinned memory has no content of its own on phantoms; what a GPU would need is told."""
        without, optimizer = self.run_grid("{gpus_per_node: [1], offload: [none, optimizer]}")
        self.assertEqual((without["outcome"], optimizer["outcome"]), ("ok", "ok"), (without, optimizer))
        self.assertGreater(optimizer["pinned_bytes"] - without["pinned_bytes"], 4 * 50_000_000, (without, optimizer))  # two moments of bf16

    def explained(self, trial):
        return subprocess.run([BIN / "sweep", "explain", trial["trial"], "phantom.rehearsal", "--db", self.folder / "grid.db"], capture_output=True,
                              text=True, timeout=60).stdout

    def test_an_xid_of_the_gpus_own_is_the_nodes_loss(self):
        trial = self.only("{gpus_per_node: [2]}", faults="xid:at=400:rank=1:code=79")
        self.assertEqual((trial["outcome"], trial["cause_rank"]), ("node_lost", 1), trial)
        self.assertRegex(trial["reason"], r"GPU GPU-[0-9a-f-]{32,} of .+ \(rank 1\) reported Xid 79: ")
        self.assertIn("(rank 1) reported Xid 79", " ".join(self.explained(trial).split()))

    def test_an_xid_of_the_programs_doing_explains_its_crash(self):
        trial = self.only("{gpus_per_node: [2]}", faults="xid:at=400:rank=0:code=31")
        self.assertEqual((trial["outcome"], trial["cause_rank"]), ("crash", 0), trial)
        self.assertIn("(rank 0) reported Xid 31", trial["reason"])

    def test_an_xid_that_stops_nothing_is_told(self):
        trial = self.only("{gpus_per_node: [2]}", faults="xid:at=400:rank=0:code=63")
        self.assertEqual(trial["outcome"], "ok", trial)
        self.assertIn("(rank 0) reported Xid 63", " ".join(self.explained(trial).split()))

    def test_out_of_memory_in_cublas(self):
        """G7"""
        trial = self.only("{gpus_per_node: [2]}", faults="cublas_oom:at=3:device=1")
        self.assert_oom(trial, "forward")
        self.assertEqual(trial["cause_rank"], 1)

    def frees(self):
        (effective,), = database.rows(self.folder / "grid.db", "select effective from rank_record")
        return json.loads(effective)["phantom"]["frees"]

    def test_a_kernel_that_finds_no_memory_for_its_code(self):
        """The allocator's cache is emptied and the code loaded again; what is refused then is an `oom`."""
        frees = []
        for faults in ("", f"module_oom:at={LATE_MODULE}"):
            trial = self.only("{gpus_per_node: [1]}", faults=faults)
            self.assertEqual(trial["outcome"], "ok", trial)
            frees.append(self.frees())
            (self.folder / "grid.db").unlink()
        self.assertGreater(frees[1], frees[0])
        self.assert_oom(self.only("{gpus_per_node: [1]}", faults=f"module_oom:at={LATE_MODULE}:times=2"), "optimizer")

    def test_out_of_memory_in_nccl(self):
        """G7: NCCL takes its memory with the first operation."""
        whole = self.only("{gpus_per_node: [2]}")
        (self.folder / "grid.db").unlink()
        room = (500 + 150 << 20) + whole["peak_reserved_bytes"]  # the context, the model, and half of what NCCL asks for
        trial = self.only("{gpus_per_node: [2]}", device={"memory_bytes": room, "nccl_bytes": 300 << 20})
        self.assertEqual((trial["outcome"], trial["oom_kind"]), ("oom", "device"), trial)
        self.assertNotEqual(trial["phase"], "init", trial)

    def test_a_hang_names_the_rank_that_did_not_come(self):
        """G4"""
        trial = self.only("{gpus_per_node: [4]}", gpus=4, faults="host_hang:at=12:rank=3")
        self.assertEqual((trial["outcome"], trial["cause_rank"]), ("hang", 3), trial)
        self.assertIn("ranks 0-2 wait in all_reduce 12 of group dp; rank 3", trial["reason"])

    def test_where_all_have_come_no_rank_is_blamed(self):
        """G4: a kernel that never meets the others looks the same on every host."""
        trial = self.only("{gpus_per_node: [4]}", gpus=4, faults="hang:at=12:rank=3")
        self.assertEqual((trial["outcome"], trial["cause_rank"]), ("hang", None), trial)

    def test_a_gpu_without_code_is_unsupported(self):
        v100 = {"name": "Tesla V100-SXM2-16GB", "compute_capability": "7.0", "memory_bytes": 16 << 30}
        trial = self.only("{gpus_per_node: [1]}", gpus=1, hardware="v100-16gb", device=v100, precision="fp16", rehearse=False)
        self.assertEqual((trial["outcome"], trial["phase"]), ("unsupported", "init"), trial)

    def test_another_gpu_than_the_declared_is_refused(self):
        trial = self.only("{gpus_per_node: [1]}", gpus=1, hardware="a100-80gb")
        self.assertEqual((trial["outcome"], trial["phase"]), ("unsupported", "init"), trial)

    def refused(self, grid, hardware, gpus=2, device=None):
        """`sweep run` ends before a trial is handed out; its words."""
        file, db = self.folder / "grid.yaml", self.folder / "refused.db"
        file.write_text(GRID.format(hardware=hardware, grid=grid, precision="bf16", steps=3, hang=120))
        done = subprocess.run([BIN / "sweep", "run", file, "--db", db], env=self.environment(gpus, device or {}, ""), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=400)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(database.rows(db, "select count(*) from attempt"), [(0,)], done.stderr)
        self.assertEqual(database.rows(db, "select distinct state from results where outcome is null"), [("pending",)])
        self.assertEqual(database.rows(db, "select count(*) from event where kind = 'hardware'"), [(1,)])
        return done.stderr

    def test_a_run_refuses_another_gpu_than_the_declared_once(self):
        """Capability, memory and name; the message has what was declared, what was found, and on which node."""
        two = "{gpus_per_node: [1, 2], zero: [0, 1]}"
        host = os.uname().nodename
        for hardware, device, found in (("a100-80gb", {}, "H100"), ("h100-sxm-80gb", {"memory_bytes": 40 << 30}, "40 GiB"),
                                        ("h100-sxm-80gb", {"name": "NVIDIA H100 PCIe"}, "h100-pcie-80gb")):
            with self.subTest(hardware=hardware, device=device):
                said = self.refused(two, hardware, device=device)
                for word in (host, hardware, found):
                    self.assertIn(word, said)
                (self.folder / "refused.db").unlink()

    def test_without_its_plugin_cpu_trials_run(self):
        """G11"""
        bare = self.folder / "bin"
        bare.mkdir()
        for program in ("sweep", "sweep-agent", "sweep-rank"):
            shutil.copy(BIN / program, bare / program)
        cpu = self.only("{gpus_per_node: [2]}", hardware="cpu", precision="fp32", bin_dir=bare, rehearse=False)
        self.assertEqual(cpu["outcome"], "ok", cpu)
        (self.folder / "grid.db").unlink()
        gpu = self.only("{gpus_per_node: [1]}", gpus=1, bin_dir=bare, rehearse=False)
        self.assertEqual(gpu["outcome"], "unsupported", gpu)

    def outside_a_rehearsal(self, gpus, *words, **environment):
        """The database of a command that no rehearsal has: its trials are invalid, what its ranks recorded is kept."""
        db = self.folder / "exchanges.db"
        done = subprocess.run([BIN / "sweep", *words, "--db", db], env={**self.environment(gpus, {}, ""), **environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=400)
        self.words = done.stdout + done.stderr
        return db

    def uuid(self, gpu):
        return subprocess.run([sys.executable, "-c", UUID, str(gpu)], env=self.environment(2, {}, ""), check=True, capture_output=True, text=True,
                              timeout=60).stdout.strip()

    def long_grid(self, gpus):
        """Steps for seconds, so that NVML is asked meanwhile."""
        file = self.folder / "grid.yaml"
        file.write_text(GRID.format(hardware="h100-sxm-80gb", grid=f"{{gpus_per_node: [{gpus}]}}", precision="bf16", steps=1500, hang=120))
        return file

    def test_nvml_is_asked_for_the_gpu_that_a_uuid_names(self):
        """G10: the clock is the one at which an H100 reaches its fp32 peak; a processor has none."""
        seen = {}
        for visible in ("1", self.uuid(1)):
            db = self.outside_a_rehearsal(2, "run", self.long_grid(1), CUDA_VISIBLE_DEVICES=visible)
            seen[visible] = database.rows(db, "select sm_clock_mhz, util_mean > 0 and util_mean <= 100, power_mean_w from attempt")
            db.unlink()
        self.assertEqual(list(seen.values()), [[(1982.0, 1, None)]] * 2, self.words)

    @staticmethod
    def has_started(db):
        try:
            return bool(database.rows(db, "select 1 from attempt where started_unix_ns > 0"))
        except sqlite3.OperationalError:
            return False  # the tables are not there yet

    def test_memory_of_another_program_does_not_make_the_node_unclean(self):
        """G15: another program takes memory of the GPU while an attempt runs, and keeps it."""
        db = self.folder / "exchanges.db"
        stranger = subprocess.Popen([sys.executable, "-c", STRANGER], env=self.environment(1, {}, ""), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (stranger.kill(), stranger.communicate()))
        self.assertEqual(stranger.stdout.readline(), "ready\n")
        run = subprocess.Popen([BIN / "sweep", "run", self.long_grid(1), "--db", db], env=self.environment(1, {}, ""), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(lambda: (run.kill(), run.communicate()))
        while run.poll() is None and not self.has_started(db):
            time.sleep(0.02)
        stranger.stdin.write("go\n")
        stranger.stdin.flush()
        self.assertEqual(stranger.stdout.readline(), "holds\n")
        held_ns = time.time_ns()
        words, _ = run.communicate(timeout=400)
        (started, ended, clean, leftovers), = database.rows(db, "select started_unix_ns, ended_unix_ns, clean, cleanup_failure from attempt")
        self.assertTrue(started < held_ns < ended, "the attempt was over too early: this tests nothing")
        self.assertIsNone(stranger.poll())
        self.assertEqual((clean, leftovers), (1, ""), words)

    def test_ranks_run_in_a_namespace_and_without(self):
        """G17: the way out that docs/gpu-findings.md names works, with the same bytes."""
        seen = []
        for without in ("", "1"):
            db = self.outside_a_rehearsal(2, "selftest", "--hardware", "h100-sxm-80gb", "--ranks-per-node", "2", "--only", "dp",
                                          **({"SWEEP_NO_NAMESPACE": "1"} if without else {}))
            seen.append(database.rows(db, "select rank, outcome, peak_allocated_bytes from rank_record order by attempt, rank"))
            db.unlink()
        self.assertTrue(seen[0], self.words)
        self.assertEqual(seen[0], seen[1])

    def test_exchanges_of_a_screen_end(self):
        """G3: each rank sends 32 MiB, which no phantom buffers, to the next one; ranks that all send first wait in a circle."""
        file = self.folder / "grid.yaml"
        file.write_text(GRID.format(hardware="h100-sxm-80gb", grid="{gpus_per_node: [4]}", precision="bf16", steps=3, hang=120))
        db = self.outside_a_rehearsal(4, "run", file, "--screen", "show")
        screens = database.rows(db, "select json_extract(facts, '$.screen.matmul_gflops') > 0 from environment")
        self.assertEqual(screens, [(1,)], self.words)

    def test_exchanges_of_a_selftest_end(self):
        """G3: four ranks in a ring."""
        db = self.outside_a_rehearsal(4, "selftest", "--hardware", "h100-sxm-80gb", "--ranks-per-node", "4", "--only", "hybrid")
        proofs = database.rows(db, "select rank, json_type(effective, '$.proof.collectives') from rank_record order by rank")
        self.assertEqual(proofs, [(rank, "array") for rank in range(4)], self.words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
