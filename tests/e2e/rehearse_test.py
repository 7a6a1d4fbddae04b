#!/usr/bin/env python3
"""rehearse_test.py BIN_DIR [CASE...]: `sweep run --rehearse`: trials on phantom GPUs, kept apart from measurements."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

import database
import sweep_folder

BIN = pathlib.Path(sys.argv[1]).resolve()
LONG = bool(os.environ.get("SWEEP_LONG"))
TRAINERS = pathlib.Path(__file__).resolve().parent / "trainers"
TORCHRUN = pathlib.Path(sys.executable).parent / "torchrun"

GRID = """name: layouts
model: {{family: llama, layers: 4, hidden_size: 512, heads: 8, kv_heads: 4, intermediate_size: 1408, vocab_size: 4096}}
base: {{hardware: {hardware}, gpus_per_node: 8, seq_len: 512{precision}, global_batch_size: 16, micro_batch_size: 1}}
grid: {grid}
"""
COMMAND = """name: own
workload:
  command: [{python}, {script}, --micro, "{{micro_batch_size}}", --steps, "{{total_steps}}"]
  env: {{PYTHONPATH: {module}}}
base: {{hardware: {hardware}, nodes: {nodes}, gpus_per_node: {gpus}, dp: {ranks}}}
grid: {{micro_batch_size: {micros}}}
measure: {{warmup_steps: 1, steps: 1}}
"""
# Every rank holds 1 GiB, and as many more as the micro-batch says while it computes.
SCRIPT = """import argparse, os, torch, sweep_trial
import torch.distributed as dist
p = argparse.ArgumentParser(); p.add_argument("--micro", type=int); p.add_argument("--steps", type=int); o = p.parse_args()
assert torch.cuda.device_count() == int(os.environ["LOCAL_WORLD_SIZE"]), torch.cuda.device_count()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
table = torch.nn.Embedding(64, 8, device="cuda")  # its gradient of so many tokens is CUB's work, which knows no code for a V100
table(torch.zeros(4096, dtype=torch.long, device="cuda")).sum().backward()
w = torch.nn.Parameter(torch.zeros(1 << 28, device="cuda"))
optimizer = torch.optim.SGD([w], lr=0.1)
sweep_trial.watch(None, optimizer)
for _ in range(o.steps):
    held = torch.empty(o.micro << 28, device="cuda")
    dist.all_reduce(held[:1 << 20])
    optimizer.step()
    del held
"""
# One rank stands for a world.
WORLD_COMMAND = """name: world
workload:
  command: [{torchrun}, --nproc-per-node, "{{gpus_per_node}}", --nnodes, "{{nodes}}", --master-port, "{{master_port}}", {script}, "{{zero}}", "{{tp}}"]
  processes: per_node
  env: {{PYTHONPATH: {module}}}
base: {{hardware: h100-sxm-80gb, gpus_per_node: 8}}
grid: {{nodes: {nodes}, zero: [0, 3], tp: [1, 2]}}
where: [zero == 3 or tp == 1]
measure: {{warmup_steps: 1, steps: 1}}
"""
ACCELERATE_COMMAND = """name: accelerate
workload:
  command: [{python}, -m, accelerate.commands.launch, --multi_gpu, --num_machines, "{{nodes}}", --num_processes, "{{world}}", --machine_rank, "{{node}}",
            --main_process_ip, "{{master_addr}}", --main_process_port, "{{master_port}}", --mixed_precision, bf16, {script}, "{{total_steps}}"]
  processes: per_node
  env: {{PYTHONPATH: {module}}}
base: {{hardware: h100-sxm-80gb, gpus_per_node: 8, nodes: {nodes}}}
grid: {{zero: [0]}}
measure: {{warmup_steps: 1, steps: 1}}
"""
# A rank of each pipeline stage stands for a world.
PIPELINE_COMMAND = """name: stages
workload:
  command: [{torchrun}, --nproc-per-node, "{{gpus_per_node}}", --nnodes, "{{nodes}}", --master-port, "{{master_port}}", {script}, "{{pp}}", "{{tp}}", "{{vpp}}", "{{grad_accum}}"]
  processes: per_node
  env: {{PYTHONPATH: {module}}}
base: {{hardware: h100-sxm-80gb, nodes: {nodes}, zero: 3}}
include:
{layouts}
measure: {{warmup_steps: 1, steps: 1}}
"""
# Stages in two pieces, one of which is neither first nor last, whose peers share what they hold. Long: other schedules, and tensor
# parallelism in a stage.
PIPELINE_LAYOUTS = [{"gpus_per_node": 6, "pp": 3, "tp": 1, "grad_accum": 6, "schedule": "interleaved", "vpp": 2}]
if LONG:
    PIPELINE_LAYOUTS = [{"gpus_per_node": 8, "pp": 4, "tp": 1, "grad_accum": 8},
                        {"gpus_per_node": 8, "pp": 2, "tp": 2, "grad_accum": 8, "schedule": "interleaved", "vpp": 2}]
# The quickstart's own function with a ninja that builds nothing and says what it is asked for.
QUICKSTART_TARGETS = """source <(sed -n '/^build_for_gpus()/,/^}/p' "$1")
build=$2
compile_jobs() { echo 1; }
ninja() { case " $* " in *" -t query "*) command ninja "$@" ;; *) echo "$@" ;; esac; }
build_for_gpus"""
PEAKS = """select r.trial, k.rank, k.peak_allocated_bytes, k.peak_reserved_bytes,
 json_extract(k.effective, '$.phantom.step.launches'), json_extract(k.effective, '$.phantom.step.collectives'), r.step_ms
 from results r join trial t on t.id = r.trial join plan_entry p on p.trial = t.key join rank_record k on k.attempt = p.final_attempt
 where r.outcome = 'ok' order by 1, 2"""


class RehearseTest(sweep_folder.SweepFolder):
    def sweep(self, *words, **environment):
        return subprocess.run([BIN / "sweep", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=500,
                              env={**os.environ, "OMP_NUM_THREADS": "1", "SWEEP_SITE": str(self.folder / "none"), **environment})

    def grid(self, grid, hardware="h100-sxm-80gb"):
        file = self.folder / "grid.yaml"
        file.write_text(GRID.format(grid=json.dumps(grid), hardware=hardware,
                                    precision="" if "precision" in grid else ", precision: bf16_mixed"))
        return file

    def rehearse(self, grid, name, *words, hardware="h100-sxm-80gb"):
        db = self.folder / name
        done = self.sweep("run", self.grid(grid, hardware), "--rehearse", "--db", db, *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        database.check(db)
        return db

    def test_roles_allocate_what_the_whole_world_does(self):
        """One rank for each pipeline stage, its other peers mirrored: the same bytes, launches and collectives."""
        grid = {"tp": [1, 2] if LONG else [2], "pp": [2], "zero": [0, 1]}
        whole = database.rows(self.rehearse(grid, "whole.db"), PEAKS)
        roles = database.rows(self.rehearse(grid, "roles.db", "--rehearse-ranks", "4"), PEAKS)
        layouts = 2 * len(grid["tp"])
        self.assertEqual(len(whole), layouts * 8)
        self.assertEqual(len(roles), layouts * 2)
        of_whole = {row[:2]: row[2:6] for row in whole}
        for row in roles:
            self.assertEqual(of_whole[row[:2]], row[2:6], row)

    def test_the_same_trial_twice_is_the_same(self):
        grid = {"tp": [2], "zero": [1]}
        first = database.rows(self.rehearse(grid, "a.db"), PEAKS)
        self.assertEqual(len(first), 8)
        self.assertEqual(first, database.rows(self.rehearse(grid, "b.db"), PEAKS))

    def test_a_step_of_many_micro_steps_is_told_from_short_ones(self):
        """Of 40 micro-steps three short steps run: launches and collectives are those of the whole step, by what 8 and 6 of them take."""
        file, db = self.folder / "many.yaml", self.folder / "many.db"
        base = GRID.format(grid="{grad_accum: [6, 8, 40], zero: [0, 3]}", hardware="h100-sxm-80gb", precision=", precision: bf16")
        file.write_text(base.replace(", global_batch_size: 16", ", dp: 8"))
        done = self.sweep("run", file, "--rehearse", "--rehearse-ranks", "1", "--db", db)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = {}
        columns = "r.zero, r.grad_accum, json_extract(k.effective, '$.report'), r.step_ms"
        for zero, micros, report, *counted, collectives, _ in database.rows(db, PEAKS.replace(PEAKS[7:PEAKS.index(",\n")], columns)):
            self.assertEqual((report or "").startswith("on the line"), micros == 40, report)
            told[zero, micros] = [*counted, *(number for _, of in sorted(json.loads(collectives).items()) for number in of.values())]
        for zero in (0, 3):
            for few, some, many, off in zip(*(told[zero, micros] for micros in (6, 8, 40)), (0.005 * told[zero, 40][0], *[0] * 99)):
                self.assertAlmostEqual(many, some + 16 * (some - few), delta=off)

    def test_gpus_that_are_hidden_hide_no_phantoms(self):
        db = self.folder / "hidden.db"
        done = self.sweep("run", self.grid({"zero": [1]}), "--rehearse", "--db", db, CUDA_VISIBLE_DEVICES="")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(database.rows(db, "select outcome from results"), [("ok",)])

    def test_many_nodes_are_rehearsed_here(self):
        db = self.rehearse({"nodes": [4], "pp": [4]}, "nodes.db")
        rows = database.rows(db, "select nodes, pp, outcome, peak_allocated_bytes > 0 from results")
        self.assertEqual(rows, [(4, 4, "ok", 1)])

    def test_groups_of_more_than_128_ranks_of_which_one_is_started(self):
        """LibTorch connects such groups through several of their ranks, and would wait for those that are not there."""
        db = self.rehearse({"nodes": [32], "tp": [8], "cp": [2]}, "large.db")
        rows = database.rows(db, "select nodes, outcome, reason from results")
        self.assertEqual(rows, [(32, "ok", None)])

    def test_attention_of_a_gpu_without_flash(self):
        """FlashAttention-2 is written for Ampere and later: `attention: auto` takes the plain form on a V100."""
        db = self.rehearse({"zero": [3], "precision": ["fp16"]}, "v100.db", hardware="v100-16gb")
        rows = database.rows(db, "select r.outcome, json_extract(k.effective, '$.attention') from results r join trial t on t.id = r.trial"
                                 " join plan_entry p on p.trial = t.key join rank_record k on k.attempt = p.final_attempt and k.rank = 0")
        self.assertEqual(rows, [("ok", "math")])

    def rehearse_command(self, name, micros, nodes=1, gpus=2, text=SCRIPT, hardware="v100-16gb"):
        script, file, db = self.folder / "own.py", self.folder / "own.yaml", self.folder / name
        script.write_text(text)
        file.write_text(COMMAND.format(python=sys.executable, script=script, module=pathlib.Path(__file__).resolve().parents[2] / "python",
                                       nodes=nodes, gpus=gpus, ranks=nodes * gpus, micros=micros, hardware=hardware))
        return self.sweep("run", file, "--rehearse", "--db", db), db

    def test_a_command_starts_fits_and_fails_on_phantoms(self):
        done, db = self.rehearse_command("own.db", [2, 20])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = database.rows(db, "select micro_batch_size, outcome, oom_kind, peak_reserved_bytes >> 30, hardware from results order by 1")
        self.assertEqual(rows, [(2, "ok", None, 3, "v100-16gb"), (20, "oom", "device", 1, "v100-16gb")])
        counted = database.rows(db, "select json_extract(k.effective, '$.phantom.collectives.all_reduce.count') from rank_record k "
                                    "join plan_entry p on p.final_attempt = k.attempt join results r on r.outcome = 'ok' "
                                    "join trial t on t.id = r.trial and t.key = p.trial order by k.rank")
        self.assertEqual(counted, [(2,), (2,)])  # the grid's own number of steps

    def test_a_command_on_several_nodes_is_rehearsed_here(self):
        done, db = self.rehearse_command("nodes_own.db", [1], nodes=2, gpus=1)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(database.rows(db, "select nodes, outcome, reason from results"), [(2, "ok", None)])

    def test_what_phantoms_do_not_answer_is_unsupported(self):
        text = SCRIPT.split("dist.init_process_group")[0] + "sweep_trial.step()\n{}\n"
        for call, calls in (("cudnn[A-Z]", "torch.nn.LSTM(8, 8, num_layers=2, dropout=0.5).cuda()(torch.zeros(4, 2, 8, device='cuda'))"),
                            ("cusolverDnCreate", "torch.linalg.svd(torch.eye(8, device='cuda'))"),
                            *([("cufftCreate", "torch.fft.fft(torch.ones(8, 64, device='cuda'))")] if LONG else [])):
            with self.subTest(call):
                done, db = self.rehearse_command(f"{call[:5]}.db", [1], gpus=1, text=text.format(calls), hardware="h100-sxm-80gb")
                self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
                (outcome, reason), = database.rows(db, "select outcome, reason from results")
                self.assertEqual(outcome, "unsupported", reason)
                self.assertRegex(reason, f"phantom GPUs do not answer {call}")
                self.assertEqual(database.rows(db, "select count(*) from attempt"), [(1,)])  # not tried again

    def test_a_check_of_a_loss_is_told_what_phantoms_compute(self):
        """Before it, batch normalization of networks for images is answered."""
        check = """norm = torch.nn.BatchNorm2d(16).cuda()
for _ in range(8):
    norm(torch.ones(2, 16, 8, 8, device='cuda')).sum().backward()
    sweep_trial.step()
assert 1 / torch.ones(1 << 16, device='cuda').sum().item() < 2
"""
        done, db = self.rehearse_command("finite.db", [1], gpus=1, text=SCRIPT.split("dist.init_process_group")[0] + check)
        (outcome, reason), = database.rows(db, "select outcome, reason from results")
        self.assertEqual(outcome, "crash", reason)
        self.assertIn("phantom GPUs compute no floats", reason)

    def test_the_quickstart_builds_what_a_rehearsal_needs(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        asked = subprocess.run(["bash", "-c", QUICKSTART_TARGETS, "bash", root / "scripts" / "quickstart", BIN.parent], capture_output=True, text=True)
        self.assertLessEqual({"sweep_cuda", "sweep_phantom_cuda", "sweep_phantom_nvidia-ml"}, set(asked.stderr.split()), asked)

    def rehearse_world(self, name, nodes, *words, text=WORLD_COMMAND, program="world_train.py", torchrun=TORCHRUN, **more):
        file, db = self.folder / "world.yaml", self.folder / name
        file.write_text(text.format(torchrun=torchrun, script=TRAINERS / program, nodes=nodes,
                                    module=pathlib.Path(__file__).resolve().parents[2] / "python", **more))
        return self.sweep("run", file, "--rehearse", "--db", db, *words), db

    def forking_torchrun(self):
        """Its path. One rank alone is started by the python3 beside it."""
        for name, program in (("torchrun", f'"{TRAINERS / "torchrun.py"}"'), ("python3", "")):
            file = self.folder / "forking" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {program} "$@"\n')
            file.chmod(0o755)
        return self.folder / "forking" / "torchrun"

    def test_one_rank_stands_for_all_ranks_of_a_command(self):
        """Its peers are mirrors of it: the same bytes, launches and collectives as in the whole world."""
        four = WORLD_COMMAND.replace("gpus_per_node: 8", "gpus_per_node: 4")
        if not LONG:
            four = four.replace("zero == 3 or tp == 1", "zero == 3 and tp == 2 or zero == 0 and tp == 1")
        torchrun = TORCHRUN if LONG else self.forking_torchrun()
        done, whole = self.rehearse_world("whole_world.db", [1], text=four, torchrun=torchrun)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done, alone = self.rehearse_world("alone.db", [1], "--rehearse-ranks", "2", text=four, torchrun=torchrun)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # Bytes of FSDP2 only: when DDP lets go of its first buckets depends on when their communication ends.
        counted = PEAKS.replace("phantom.step", "phantom").replace("k.peak", "(r.zero = 3) * k.peak")
        of_first = [row[:6] for row in database.rows(whole, counted) if row[1] == 0]
        found = [row[:6] for row in database.rows(alone, counted)]
        self.assertEqual(len(found), 3 if LONG else 2)
        self.assertEqual(found, of_first)

    def test_a_command_of_512_ranks(self):
        done, db = self.rehearse_world("large_world.db", [64], text=WORLD_COMMAND.replace("[0, 3]", "[3]"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = database.rows(db, "select zero, tp, outcome, ranks_reported, peak_allocated_bytes from results where attempts > 0 order by 1, 2")
        self.assertEqual([row[:4] for row in rows], [(3, 1, "ok", 1), (3, 2, "ok", 1)])
        self.assertLess(rows[1][4], rows[0][4])

    def test_a_rank_of_accelerate_launch_stands_for_a_world(self):
        """Its launcher's settings reach the rank: the script asserts its precision."""
        done, db = self.rehearse_world("accelerate.db", 2, text=ACCELERATE_COMMAND, program="accelerate_train.py", python=sys.executable)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(database.rows(db, "select outcome, ranks_reported from results"), [("ok", 1)])

    def rehearse_stages(self, name, nodes, *words, layouts=PIPELINE_LAYOUTS, torchrun=TORCHRUN):
        lines = "\n".join(f"  - {json.dumps(layout)}" for layout in layouts)
        done, db = self.rehearse_world(name, nodes, *words, text=PIPELINE_COMMAND, program="stages_train.py", torchrun=torchrun,
                                       layouts=lines)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return db, [row[:6] for row in database.rows(db, PEAKS.replace("phantom.step", "phantom"))]

    def test_a_rank_of_each_stage_stands_for_all_ranks_of_a_command(self):
        """Messages between stages are real, other peers are mirrors: the same bytes, launches and collectives as in the whole world."""
        torchrun = TORCHRUN if LONG else self.forking_torchrun()
        _, whole = self.rehearse_stages("whole_stages.db", 1, torchrun=torchrun)
        db, roles = self.rehearse_stages("stages.db", 1, "--rehearse-ranks", "4", torchrun=torchrun)
        self.assertEqual(len(whole), sum(layout["gpus_per_node"] for layout in PIPELINE_LAYOUTS))
        of_a_stage = dict(database.rows(db, "select trial, gpus_per_node / pp from results"))
        self.assertEqual(roles, [row for row in whole if row[1] % of_a_stage[row[0]] == 0])
        self.assertEqual(len(roles), sum(layout["pp"] for layout in PIPELINE_LAYOUTS))

    def test_stages_of_a_command_of_512_ranks(self):
        db, roles = self.rehearse_stages("many_stages.db", 64, layouts=[{"gpus_per_node": 8, "pp": 4, "tp": 8, "grad_accum": 8}])
        self.assertEqual([row[1] for row in roles], [128 * stage for stage in range(4)])
        self.assertEqual(database.rows(db, "select outcome, ranks_reported from results"), [("ok", 4)])

    def test_a_command_whose_ranks_cannot_be_told_is_pruned(self):
        for text in (WORLD_COMMAND.replace("gpus_per_node: 8}}", "gpus_per_node: 8, pp: 32, grad_accum: 32}}"),
                     WORLD_COMMAND.replace("gpus_per_node: 8}}", "gpus_per_node: 8, pp: 4, grad_accum: 4}}").replace('"{{tp}}"]', "--use-tp-pp-dp-mapping]"),
                     WORLD_COMMAND.replace("{torchrun}", "srun")):
            done, _ = self.rehearse_world("pruned.db", [8], text=text)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("no trial can be rehearsed", done.stderr)

    def test_a_command_without_phantoms_brings_no_result(self):
        own = "import sweep_trial\nfor _ in range(4): sweep_trial.step()\n"
        done, db = self.rehearse_command("cpu.db", [1], text=own)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(database.rows(db, "select outcome from results"), [("invalid",)])

    def test_micro_batch_sizes_are_looked_for(self):
        """`auto`: the sizes around the largest that fits are rehearsed, the others not."""
        file = self.folder / "auto.yaml"
        file.write_text("name: auto\nmodel: llama3.2-1b\nmeasure: {warmup_steps: 1, steps: 1}\n"
                        "base: {hardware: h100-sxm-80gb, seq_len: 2048, precision: bf16, micro_batch_size: {auto: [1, 64]}}\n"
                        "grid: {recompute: [none]}\n")
        done = self.sweep("run", file, "--rehearse", "--db", self.folder / "auto.db")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = database.rows(self.folder / "auto.db", "select micro_batch_size, outcome from results where attempts > 0 order by 1")
        fits, too_large = [size for size, end in rows if end == "ok"], [size for size, end in rows if end == "oom"]
        self.assertEqual(len(fits) + len(too_large), len(rows), rows)
        self.assertTrue(fits and too_large and max(fits) < min(too_large) and len(rows) <= 7, rows)
        left, = database.rows(self.folder / "auto.db", "select count(*) from results where rule = 'batch'")[0]
        self.assertEqual(left + len(rows), 32)

    def test_a_rehearsal_is_no_measurement(self):
        db = self.rehearse({"tp": [2]}, "kept.db")
        self.assertEqual(database.rows(db, "select distinct sweep from results"), [("layouts.rehearsal",)])
        for command in (["best"], ["heatmap", "--rows", "tp", "--cols", "dp", "-o", self.folder / "h.html"],
                        ["report", "-o", self.folder / "r.html"], ["export", "csv"]):
            done = self.sweep(*command, "--db", db)  # the only sweep of the file
            self.assertEqual(done.returncode, 0, command)
            shown = done.stdout + done.stderr + "".join(page.read_text() for page in self.folder.glob("?.html"))
            self.assertRegex(shown.lower(), "rehears", command)
        named = self.sweep("best", "layouts.rehearsal", "--db", db)
        self.assertEqual(named.returncode, 0, named.stderr)
        self.assertIn("layouts.rehearsal", self.sweep("export", "csv", "layouts.rehearsal", "--db", db).stdout)

    def test_phantom_gpus_never_pass_for_gpus(self):
        """Ranks that find phantom GPUs outside a rehearsal bring no result."""
        libraries = BIN.parent / "phantom"
        db = self.folder / "wrong.db"
        self.sweep("run", self.grid({"dp": [8]}), "--db", db, LD_PRELOAD=str(libraries / "libsweep_phantom.so"),
                   LD_LIBRARY_PATH=str(libraries), SWEEP_PHANTOM="{}", SWEEP_PHANTOM_GPUS="8", SWEEP_PHANTOM_NODE=self.folder.name)
        self.assertEqual(database.rows(db, "select outcome from results"), [("invalid",)])

    def test_what_the_host_updates_is_counted_before_ranks_start(self):
        """70 G parameters with eight bytes of moments each are more than this machine has."""
        file = self.folder / "host.yaml"
        file.write_text("name: host\nmodel: llama3-70b\nbase: {hardware: h100-sxm-80gb, gpus_per_node: 8, tp: 8, seq_len: 512, precision: bf16_master}\n"
                        "grid: {offload: [optimizer]}\n")
        done = self.sweep("run", file, "--rehearse", "--db", self.folder / "host.db")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stderr, "the host updates take [45][0-9]{2}[.0-9]* GiB")

    def test_what_cannot_be_rehearsed_is_refused(self):
        for words in ([], ["--on", "local"], ["--jobid", "3"]):
            hardware = "cpu" if not words else "h100-sxm-80gb"
            done = self.sweep("run", self.grid({"tp": [2]}, hardware), "--rehearse", "--db", self.folder / "x.db", *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertFalse((self.folder / "x.db").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
