#!/usr/bin/env python3
"""phantom_test.py BUILD: LibTorch's own allocator, streams, ProcessGroupNCCL, watchdog and FSDP2 on phantom GPUs."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from forks import Forks

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANKS = pathlib.Path(__file__).with_name("ranks.py")
CALLS = pathlib.Path(__file__).with_name("calls.py")
DEVICES = {each["hardware"]: json.dumps(each) for each in json.loads((ROOT / "bench_kernels/shape/hardware.json").read_text())}
PHANTOM: list = []  # what starts a command under phantom GPUs of the build
FORKS = None
GIB = 1 << 30
SECONDS = 900  # for a process that must end by itself; ten of them load PyTorch at once
DUMP_WAIT_MS = "500"  # a watchdog that found a timeout or an error waits four times as long for the flight recorder: 60 s by default


class PhantomTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sweep-phantom-test-"))
        self.node = f"test-{os.getpid()}-{self.id().rsplit('.', 1)[-1]}"
        self.begun = []

    def tearDown(self):
        for process in self.begun:
            if process.poll() is None:
                process.kill()
            process.communicate()
        shutil.rmtree(self.folder)

    def start(self, case, ranks=1, gpus=None, device="h100-sxm-80gb", faults="", program=RANKS, fresh=False, **variables):
        """One process per rank, under phantom GPUs; fresh: each is started by scripts/phantom and imports PyTorch itself, which reads
        some variables then."""
        variables = {"WORLD_SIZE": ranks, "PHANTOM_RENDEZVOUS": self.folder / f"rendezvous-{len(self.begun)}", "OMP_NUM_THREADS": 1,
                     "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": DUMP_WAIT_MS, **variables}
        processes = []
        for rank in range(ranks):
            env = {"RANK": str(rank), **{name: str(value) for name, value in variables.items()}}
            if fresh:
                phantom = [*PHANTOM, "--gpus", str(gpus or ranks), "--node", self.node, "--device", device,
                           "--counters", str(self.folder / "counters-%r.json"), *(["--faults", faults] if faults else []), "--"]
                processes.append(subprocess.Popen([*phantom, sys.executable, str(program), case], env={**os.environ, **env}, text=True,
                                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            else:
                env |= {"SWEEP_PHANTOM": DEVICES[device], "SWEEP_PHANTOM_GPUS": str(gpus or ranks), "SWEEP_PHANTOM_NODE": self.node,
                        "SWEEP_PHANTOM_FAULTS": faults}
                processes.append(FORKS.start([program, case], self.folder, env))
        self.begun += processes
        return processes

    def finish(self, process):
        out, err = process.communicate(timeout=SECONDS)
        lines = [line for line in out.splitlines() if line.startswith("{")]
        return (json.loads(lines[-1]) if lines else None), err

    def run_case(self, case, ranks=1, **options):
        """The answers and the error streams of all ranks, every one of which ended well."""
        processes = self.start(case, ranks, **options)
        answers = [self.finish(process) for process in processes]
        for process, (answer, err) in zip(processes, answers):
            self.assertEqual(process.returncode, 0, err)
            self.assertIsNotNone(answer, err)
        return [answer for answer, _ in answers], "".join(err for _, err in answers)

    def counters(self, rank=0):
        return json.loads((self.folder / f"counters-{rank}.json").read_text())

    def test_memory_is_the_real_allocators(self):
        for segments in ("", "expandable_segments:True"):
            with self.subTest(segments=segments):
                (got,), err = self.run_case("memory", fresh=True, PYTORCH_CUDA_ALLOC_CONF=segments)
                self.assertEqual(got["peak"], 10 * GIB, err)
                self.assertEqual(got["used"], 10 * GIB + (500 << 20))  # the context is counted
                self.assertEqual(got["after"], 500 << 20)
                self.assertIn("Tried to allocate 75.00 GiB", got["text"])
                self.assertEqual(got["back"], [0, 1, 2, 3, 4])
                self.assertTrue(got["pinned"])

    def test_large_pinned_memory_costs_nothing(self):
        (got,), err = self.run_case("pinned")
        self.assertLess(got["cost"], 64 << 20, err)
        self.assertEqual((got["back"], got["moved"], got["small"]), (1, 2 * GIB, 4095 * 2048))
        self.assertGreaterEqual(self.counters()["peak_pinned_bytes"], 2 * GIB)

    def test_described_device(self):
        (got,), _ = self.run_case("memory", device="h200-141gb")
        self.assertEqual(got["name"], "NVIDIA H200")
        self.assertEqual(got["text"], "")  # 75 GiB fit

    def test_unknown_description_is_refused(self):
        wrong = self.folder / "wrong.json"
        wrong.write_text('{"memory": 1}')
        process = self.start("use", device=str(wrong), fresh=True)[0]
        _, err = self.finish(process)
        self.assertEqual(process.returncode, 2)
        self.assertIn('"memory"', err)

    def test_a_path_that_cannot_be_preloaded_is_refused(self):
        for name in ("a b", "a:b", "a;b"):
            (self.folder / name / "phantom").mkdir(parents=True)
            (self.folder / name / "phantom/libsweep_phantom.so").touch()
            done = subprocess.run([str(ROOT / "scripts/phantom"), "--build", str(self.folder / name), "--print"],
                                  capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual((done.returncode, done.stdout), (2, ""), name)

    def test_attributes(self):
        (got,), _ = self.run_case("attributes", program=CALLS)
        self.assertAlmostEqual(got["bandwidth"] / 3.35e12, 1, delta=1e-5)
        (got,), _ = self.run_case("attributes", program=CALLS, device="titan-rtx-24gb")
        self.assertEqual(got["shared"], [64 << 10, 64 << 10])

    def test_managed_memory_is_not_the_devices(self):
        (got,), err = self.run_case("managed", program=CALLS)
        self.assertEqual(got, {"charged": 0, "kind": 3, "back": 7}, err)
        self.assertEqual(self.counters()["peak_pinned_bytes"], 100 * GIB)

    def test_pool_of_asynchronous_allocations(self):
        (got,), err = self.run_case("pool", program=CALLS, fresh=True, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
        small, page = 512 * got["small"], 2 << 20
        self.assertEqual((got["held"], got["after"], got["peak"], got["reset"]), (4 * GIB + small, small, 4 * GIB + small, small), err)
        self.assertEqual((got["used"], got["kept"], got["trimmed"]), (4 * GIB + page, 4 * GIB + page, page))
        self.assertEqual(got["reserved_most"], 4 * GIB + page, "the most used was set back alone")

    def test_products_of_few_bits(self):
        (got,), err = self.run_case("products", program=CALLS, device="b200-180gb")
        self.assertAlmostEqual(got["int8"], 2 * 8192**3 / (4500e12 * 0.75) * 1e3, delta=0.1, msg=err)
        self.assertAlmostEqual(got["fp4"], 2 * 8192**3 / (4500e12 * 0.75) * 1e3, delta=0.1, msg=err)
        self.assertAlmostEqual(got["thin"], 2 * 8192**2 / 8e12 * 1e3, delta=0.005, msg=err)

    def nvml(self):
        """(bytes used, processes) of device 0, as another program asks NVML."""
        code = ("import ctypes, json\n"
                "nvml = ctypes.CDLL('libnvidia-ml.so.1'); assert nvml.nvmlInit_v2() == 0\n"
                "d = ctypes.c_void_p(); assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d)) == 0\n"
                "m = (ctypes.c_ulonglong * 3)(); assert nvml.nvmlDeviceGetMemoryInfo(d, m) == 0\n"
                "n = ctypes.c_uint(64); p = (ctypes.c_ulonglong * 192)()\n"
                "assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(d, ctypes.byref(n), p) == 0\n"
                "print(json.dumps([m[2], n.value]))\n")
        done = subprocess.run([*PHANTOM, "--node", self.node, "--", sys.executable, "-c", code],
                              capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return tuple(json.loads(done.stdout))

    def test_left_over_process_is_seen(self):
        holder = self.start("hold")[0]
        self.assertEqual(json.loads(holder.stdout.readline()), {"held": 40 * GIB})
        self.assertEqual(self.nvml(), (40 * GIB + (500 << 20), 1))
        (got,), _ = self.run_case("use")
        self.assertEqual(got["used"], 40 * GIB + 2 * (500 << 20))
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        (got,), _ = self.run_case("use")
        self.assertEqual(got["used"], 500 << 20)
        self.assertEqual(self.nvml(), (0, 0))

    def test_a_forked_child_asks_nvml(self):
        (got,), err = self.run_case("forked")
        self.assertEqual(got["child"], {"answers": [0, 0, 0], "used": GIB + (500 << 20)}, err)
        self.assertEqual(got["used"], GIB + (500 << 20))  # the child's question took nothing from its parent

    def test_files_of_the_dead_are_removed(self):
        self.start("use")[0].wait(SECONDS)
        mine = pathlib.Path(f"/dev/shm/sweep-phantom-{os.getuid()}-node-{self.node}")
        self.assertTrue(mine.exists())
        self.node += "-next"
        self.run_case("use")
        self.assertFalse(mine.exists())

    def test_a_node_with_too_many_processes_says_so(self):
        def lock(kind, start, count):
            fcntl.fcntl(shared, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, start, count, 0))

        linked = 0
        while not linked:  # another phantom may have removed the file before it was in use
            shared = open(f"/dev/shm/sweep-phantom-{os.geteuid()}-node-{self.node}", "w+")
            lock(fcntl.F_RDLCK, 1 << 20, 1)
            linked = os.fstat(shared.fileno()).st_nlink
        with shared:
            lock(fcntl.F_WRLCK, 0, 512)  # every entry
            process = self.start("memory")[0]
            _, err = self.finish(process)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("OutOfMemoryError", err)
        self.assertEqual(err.count("512 other processes"), 1, err)

    def test_clock(self):
        (got,), _ = self.run_case("clock", fresh=True, SWEEP_PHANTOM_LAUNCHES=self.folder / "launches-%r")
        flops = 2 * 8192**3
        self.assertAlmostEqual(got["product"], flops / (989.4e12 * 0.75) * 1e3, delta=0.1)
        self.assertGreaterEqual(got["waits"], 0)
        self.assertLess(got["early"], 0)  # an event that does not wait is earlier
        self.assertAlmostEqual(got["graph"], 2 * got["product"], delta=0.05)
        self.assertEqual(self.counters()["graph_launches"], 1)
        launched = [line.split("\t") for line in (self.folder / "launches-0").read_text().splitlines()]
        self.assertEqual({len(line) for line in launched}, {3})
        products = [float(bytes_) for _, bytes_, name in launched if name.startswith("product 8192 x 8192 x 8192, 1 at once")]
        self.assertGreater(len(products), 1)
        self.assertEqual(set(products), {3 * 2 * 8192.0**2})
        self.assertIn(2 * 8192.0**2, [float(bytes_) for _, bytes_, name in launched if name.startswith("malloc 0x")])

    def test_collectives(self):
        answers, _ = self.run_case("collectives", ranks=3)
        for rank, got in enumerate(answers):
            self.assertEqual(got["all_reduce"], [6.0, 6.0])
            self.assertEqual(got["avg"], [1.5])
            self.assertEqual(got["all_gather"], [0, 10, 20])
            self.assertEqual(got["broadcast"], 1)
            self.assertEqual(got["reduce_scatter"], 3.0 * (1 + rank) + 3)
            self.assertEqual(got["all_to_all"], [0.0 + rank, 10.0 + rank, 20.0 + rank])
            self.assertEqual(got["ring"], (rank - 1) % 3)
            self.assertEqual(got.get("split"), 14.0 if rank < 2 else None)
        size = 128 << 20
        self.assertAlmostEqual(answers[0]["large_ms"], size * 2 * 2 / 3 / (450e9 * 0.969) * 1e3, delta=0.05)
        self.assertEqual(self.counters(2)["collectives"]["all_to_all"]["count"], 1)

    def test_split_sizes_cost_what_they_send(self):
        answers, _ = self.run_case("exchanges", ranks=3)
        expected = 2 * (256 << 20) / (450e9 * 0.555) * 1e3
        for got in answers:
            self.assertAlmostEqual(got["even"], expected, delta=0.05)
            self.assertAlmostEqual(got["split"], expected, delta=0.05)

    def test_messages_of_a_group_share_the_links(self):
        (got,), err = self.run_case("groups", program=CALLS)
        size, near, far = 16 << 20, 450e9 * 0.555, 50e9
        for nodes, all_ms, next_ms in (("1", 15 * size / near * 1e3, size / near * 1e3), ("2", 8 * size / far * 1e3, size / near * 1e3)):
            of = got[nodes]
            self.assertAlmostEqual(of["all"], all_ms, delta=0.05, msg=err)
            self.assertAlmostEqual(of["all"], of["all_to_all"], delta=0.001)
            self.assertAlmostEqual(of["next"], next_ms, delta=0.05)
            self.assertLess(of["itself"], 0.05)
            self.assertAlmostEqual(of["gathers"], 3 * of["gather"], delta=0.1)
        self.assertAlmostEqual(got["1"]["both"], got["1"]["next"], delta=0.001)  # the two ways of a link
        self.assertAlmostEqual(got["2"]["both"], size / far * 1e3, delta=0.05)  # rank 15 is on the other node

    def test_a_ring_over_nodes_slows_with_its_ranks(self):
        """Shares are of nodes of 8 ranks: 16 ranks are two of them, also where each is on a node of its own."""
        (got,), err = self.run_case("groups", program=CALLS, fresh=True, SWEEP_PHANTOM_PROFILE='{"other_share": [1, 0.5, 0.1]}')
        bytes_moved = 15 * (16 << 20)
        self.assertAlmostEqual(got["16"]["gather"], bytes_moved / (50e9 * 0.5) * 1e3, delta=0.1, msg=err)
        self.assertAlmostEqual(got["2"]["gather"], bytes_moved / (8 * 50e9 * 0.5) * 1e3, delta=0.1)

    def test_messages_between_nodes_may_be_slow(self):
        (plain,), err = self.run_case("groups", program=CALLS, fresh=True)
        (slow,), _ = self.run_case("groups", program=CALLS, fresh=True, SWEEP_PHANTOM_PROFILE='{"far_message_ns": 7000000}')
        self.assertAlmostEqual(slow["2"]["both"], plain["2"]["both"] + 7, delta=0.001, msg=err)
        for nodes, kind in (("1", "both"), ("2", "next"), ("2", "gather")):
            self.assertAlmostEqual(slow[nodes][kind], plain[nodes][kind], delta=0.001)

    def test_a_part_of_started_ranks_is_started(self):
        answers, err = self.run_case("split_under_roles", ranks=2)
        self.assertEqual([got["sum"] for got in answers], [3.0, 3.0], err)

    def test_objects_of_any_size_arrive(self):
        answers, _ = self.run_case("objects", ranks=2)
        for rank, got in enumerate(answers):
            self.assertEqual(got, {"gathered": [0, 100], "root": [0, 1] if rank == 0 else [], "broadcast": [[2, 3], 300, 7],
                                   "part": 50 * (rank + 1), "sent": [[4, 5], 200]})

    def test_small_whole_numbers_are_computed(self):
        (got,), _ = self.run_case("whole_numbers")
        self.assertEqual(got, {
            "add": list(range(1, 11)), "strided": [2 * x - (x + 1) for x in range(0, 10, 2)], "in_place": [4, 1, 4, 1],
            "compare": [x > 7 for x in range(10)], "cat": [8, 9, 0, 1], "sum": 45, "max": [[4, 9], [4, 4]], "mask": [0, 3, 6, 9],
            "float": [0, 0.5, 1], "cast": [0, 1, 2], "count": [4, 3, 3], "widest": 9, "large": False, "kept": 0,
            "captured": list(range(10))})

    def test_hang_is_real_and_recorded(self):
        dump = self.folder / "trace"
        absent, waits = (lambda p: (p[1], p[0]))(self.start(
            "hang", 2, TORCH_NCCL_TRACE_BUFFER_SIZE=100, TORCH_NCCL_DUMP_ON_TIMEOUT=1, TORCH_NCCL_DEBUG_INFO_TEMP_FILE=dump,
            TORCH_FR_DUMP_TEMP_FILE=dump, TORCH_FR_BUFFER_SIZE=100))
        answer, err = self.finish(waits)
        self.assertNotEqual(waits.returncode, 0)
        self.assertIsNone(answer)
        self.assertIn("Watchdog caught collective operation timeout", err)
        self.assertTrue((self.folder / "trace0").stat().st_size > 0)
        absent.kill()

    def test_mismatch_names_both_ranks(self):
        processes = self.start("mismatch", 2)
        answers = [self.finish(process) for process in processes]
        err = "".join(err for _, err in answers)
        self.assertIn("rank 0 calls all_reduce of 64 float32 (sum), rank 1 calls all_reduce of 128 float32 (sum)", err)
        self.assertTrue(all(process.returncode != 0 for process in processes), err)

    def test_sends_are_unbuffered_above_a_size(self):
        answers, _ = self.run_case("both_send", 2, PHANTOM_BYTES=1024)
        self.assertEqual(answers, [{"came": True}] * 2)
        processes = self.start("both_send", 2, PHANTOM_BYTES=1 << 20)
        answers = [self.finish(process) for process in processes]
        self.assertEqual([answer for answer, _ in answers], [None, None])
        self.assertTrue(any("timeout" in err for _, err in answers))

    def test_fsdp_twice_is_the_same(self):
        seen = []
        for _ in range(2):
            answers, _ = self.run_case("train", 2)
            counted = [self.counters(rank) for rank in range(2)]
            for one in counted:
                del one["pid"]
            seen.append((answers, counted))
        self.assertEqual(seen[0], seen[1])
        self.assertGreater(seen[0][1][0]["launches"], 100)
        self.assertGreater(seen[0][1][0]["collectives"]["all_gather"]["count"], 0)

    def test_attention_of_every_backend_answers(self):
        (got,), err = self.run_case("attention")
        self.assertEqual(got["shape"], [2, 16, 1024, 128], err)

    def test_attention_of_few_queries_takes_its_products_time(self):
        (got,), err = self.run_case("few_queries")
        products = 4 * 28 * 256**2 * 128 / (989.4e12 * 0.55) * 1e3
        self.assertLess(got["ms"], max(10 * products, 1), err)  # beside it a few launches, which a busy host spreads; 12.6 by the wrong kernel

    def test_deterministic_attention_takes_its_products_time(self):
        (got,), err = self.run_case("deterministic_attention", program=CALLS)
        products = 5 * 2 * 8 * 8192**2 * 128 / (989.4e12 * 0.55) * 1e3
        for ms in got["ms"]:  # beside it the sums of several blocks
            self.assertGreater(ms, products, err)
            self.assertLess(ms, 2 * products, err)

    def start_each(self, case, faults):
        """Two ranks per fault, each pair on a node of its own, all at once: most of them wait for a timeout."""
        started = {}
        plain = self.node
        for i, fault in enumerate(faults):
            self.node = f"{plain}-{i}"
            started[fault] = self.start(case, 2, faults=fault)
        return started

    def test_faults(self):
        cases = {
            "malloc_oom:at=1:rank=1": "out of memory",
            "cublas_oom:at=2:rank=1": "CUBLAS_STATUS_ALLOC_FAILED",
            "nccl_oom:rank=1": "Cuda failure 2 'out of memory'",
            "launch_failure:at=3:rank=1": "illegal memory access",
            "nccl_error:at=2:rank=1": "remote process exited",
        }
        for fault, processes in self.start_each("work", cases).items():
            with self.subTest(fault=fault):
                answer, err = self.finish(processes[1])
                self.assertIn(cases[fault], (answer or {}).get("text", "") + err)
                processes[0].kill()

    def test_hangs_by_instruction(self):
        for fault, processes in self.start_each("work", ("hang:at=4:rank=1", "host_hang:at=4:rank=1")).items():
            with self.subTest(fault=fault):
                answer, err = self.finish(processes[0])
                self.assertIn("timeout", (answer or {}).get("text", "") + err)
                processes[1].kill()

    def test_slow_gpu_and_xid(self):
        (plain, _), _ = self.run_case("work", 2)
        answers, err = self.run_case("work", 2, faults="slow_gpu:factor=4:rank=0;xid:at=2:rank=0:code=63")
        self.assertGreater(answers[0]["ms"], 2 * plain["ms"])
        self.assertAlmostEqual(answers[1]["ms"], plain["ms"], delta=0.2 * plain["ms"])
        self.assertIn("Xid (PCI:0000:01:00.0): 63", err)


if __name__ == "__main__":
    PHANTOM += [str(ROOT / "scripts/phantom"), "--build", str(pathlib.Path(sys.argv.pop(1)).resolve())]
    FORKS = Forks([*PHANTOM, "--"], ["torch._dynamo", "torch.distributed.fsdp"])  # fully_shard imports the first
    try:
        unittest.main(verbosity=2)
    finally:
        FORKS.close()
