#!/usr/bin/env python3
"""trainers_test.py BIN_DIR [PACKAGES]: real trainers as commands of an agent, on CPU: PyTorch's DDP, torchrun, transformers' Trainer,
Lightning, DeepSpeed ZeRO 1 to 3; with faults in the middle. PACKAGES: a folder that has them."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

from cluster import agents
from cluster.daemons import wait_for

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
SCRIPTS = HERE / "trainers"
STEPS = 6  # one for warm-up, three timed, and some more
LIMITS = {"startup_s": 600, "first_step_s": 600, "step_s": 120, "total_s": 1500}  # a start takes a minute on a busy machine


class TrainersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sweep-trainers-")
        self.addCleanup(folder.cleanup)
        self.it = agents.Agents(pathlib.Path(folder.name) / "spools", BIN, 1, slots=2)
        self.it.environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parents[1] / "python"), os.environ.get("PYTHONPATH", "")])
        self.addCleanup(self.it.stop)
        self.it.start()
        self.posted = 0

    def run_command(self, argv, deadlines=None, ranks=2, **command):
        self.posted += 1
        body = agents.attempt(self.posted, ranks=ranks, deadlines={**LIMITS, **(deadlines or {})})
        body["trial"].update(workload="command", gpus_per_node=ranks,
                             program=json.dumps({"argv": [sys.executable, *map(str, argv)], **command}))
        self.it.post("attempt", body)
        end = self.it.end_of(self.posted, 1600)
        self.assertTrue(end["clean"], end)
        records = {line["body"]["rank"]: line["body"] for line in self.it.lines("rank_record")
                   if line["body"]["attempt"] == self.posted}
        return end, records

    def logs(self):
        texts = sorted(self.it.spool(0).glob(f"attempts/{self.posted}/rank_*.log"))
        return "\n".join([str(self.it.lines("attempt_end", self.posted)), *(text.read_text()[-2000:] for text in texts)])

    def assert_measured(self, records, tokens=None, ranks=2):
        self.assertEqual(sorted(records), list(range(ranks)), self.logs())
        for record in records.values():
            self.assertEqual(record["outcome"], "ok", record)
            samples = record["samples"]
            self.assertEqual(samples["step"], [0, 1, 2, 3], record)
            for each in zip(samples["step_ns"], samples["forward_ns"], samples["backward_ns"], samples["optimizer_ns"]):
                step, parts = each[0], each[1:]
                self.assertTrue(all(part > 0 for part in parts), each)
                self.assertLessEqual(sum(parts), step * 1.001, each)
            if tokens:
                self.assertEqual(samples["tokens"], [tokens] * 4)

    def test_ddp_one_process_a_rank(self):
        _, records = self.run_command([SCRIPTS / "torch_train.py", "ddp", STEPS])
        self.assert_measured(records, tokens=2 * 32)

    def test_torchrun_tells_which_rank_ran_out_of_memory(self):
        """What torchrun's ranks measure: recipes_test.py, by FSDP2."""
        torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "{local_world}", "--master-port", "{master_port}"]
        end, records = self.run_command([*torchrun, SCRIPTS / "torch_train.py", "ddp", STEPS, "--fault", "oom"],
                                        per_node=True, env={"FAULT_RANK": "1"})
        self.assertEqual((end["cause"], records[1]["outcome"], records[1]["oom_kind"]), ("rank_failed", "oom", "host"))

    def test_a_script_that_knows_nothing_of_us(self):
        script = self.it.folder / "plain.py"
        script.write_text("import torch\nm = torch.nn.Linear(8, 8)\no = torch.optim.SGD(m.parameters(), lr=.1)\n"
                          "for _ in range(6):\n  m(torch.ones(2, 8)).sum().backward(); o.step()\n")
        end, records = self.run_command(["-m", "sweep_trial", script], ranks=1)
        self.assertEqual(end["cause"], "done")
        for record in records.values():
            self.assertEqual((record["outcome"], record["samples"]["step"]), ("ok", [0, 1, 2, 3]))

    def test_a_rank_that_sleeps_in_a_collective_is_a_hang(self):
        end, _ = self.run_command([SCRIPTS / "torch_train.py", "ddp", STEPS, "--fault", "hang"], deadlines={"step_s": 15}, env={"FAULT_RANK": "1"})
        self.assertEqual(end["cause"], "hang")
        ranks = {each["rank"]: each for each in end["evidence"]["ranks"]}
        self.assertIn("waits_in", ranks[0]["flight"][0], "Gloo's flight recorder: it has entered what rank 1 has not")
        self.assertNotIn("waits_in", ranks[1]["flight"][0])
        self.assertIn("torch_train.py", ranks[1]["stacks"])

    def test_a_crash_is_the_failing_ranks(self):
        _, records = self.run_command([SCRIPTS / "torch_train.py", "ddp", STEPS, "--fault", "crash"], env={"FAULT_RANK": "1"})
        self.assertEqual((records[1]["outcome"], records[1]["consequential"]), ("crash", False))

    # One rank shows what the callbacks tell; recipes_test.py runs both trainers on two.
    def test_transformers_trainer(self):
        _, records = self.run_command([SCRIPTS / "hf_train.py", STEPS], ranks=1)
        self.assert_measured(records, tokens=2 * 2 * 32, ranks=1)

    def test_lightning(self):
        _, records = self.run_command([SCRIPTS / "lightning_train.py", STEPS], ranks=1)
        self.assert_measured(records, tokens=2 * 2 * 32, ranks=1)

    def test_deepspeed(self):
        for stage in (1, 2, 3) if os.environ.get("SWEEP_LONG") else (3,):  # recipes_test.py runs 1 too
            with self.subTest(stage):
                settings = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
                            "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}},
                            "zero_optimization": {"stage": stage}}
                text = json.dumps(settings).replace("{", "{{").replace("}", "}}")
                _, records = self.run_command([SCRIPTS / "deepspeed_train.py", "{files}/ds.json", STEPS], files={"ds.json": text},
                                              env={"DS_ACCELERATOR": "cpu"})
                self.assert_measured(records, tokens=2 * 2 * 32)

    def tearDown(self):
        self.it.finish()
        wait_for(lambda: not agents.marked(self.it.folder), 60, "no process is left")


if __name__ == "__main__":
    unittest.main(verbosity=2)
