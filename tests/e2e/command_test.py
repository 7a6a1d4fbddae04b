#!/usr/bin/env python3
"""command_test.py BIN_DIR: trials whose step is another program: started, watched, ended and recorded by a real agent."""
import json
import pathlib
import shutil
import signal
import sys
import tempfile
import unittest

from cluster import agents
from cluster.daemons import wait_for

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
MODULE = HERE.parents[1] / "python"

# A trainer without PyTorch: STEPS steps of MS milliseconds, then what the mode says.
TRAINER = """
import os, sys, time, signal, subprocess
sys.path.insert(0, os.environ["MODULE"])
import sweep_trial
mode, steps = sys.argv[1], int(sys.argv[2])
wrong = mode != "ok" and os.environ.get("RANK", "0") == os.environ.get("WRONG", "0")
for i in range(steps):
    time.sleep(0.02)
    if wrong and i == 3:
        if mode == "oom": raise MemoryError("no more")
        if mode == "crash": raise ValueError("a fault of the trainer")
        if mode == "exit": os._exit(7)
        if mode == "kill": os.kill(os.getpid(), signal.SIGKILL)
        if mode == "segv": os.kill(os.getpid(), signal.SIGSEGV)
        if mode == "hang": time.sleep(1000)
        if mode == "leave":
            subprocess.Popen(["setsid", "sleep", "1000"])
            for each in range(3):
                subprocess.Popen([sys.executable, "-c", "import time, signal; signal.signal(15, signal.SIG_IGN); time.sleep(1000)"])
    sweep_trial.step(tokens=100, loss=float(10 - i))
"""

LAUNCHER = """
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]], env=dict(os.environ, RANK=str(r), WORLD_SIZE='2')) for r in range(2)]
sys.exit(max(abs(each.wait()) for each in ranks))
"""


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sweep-command-")
        self.addCleanup(self.folder.cleanup)
        self.script = pathlib.Path(self.folder.name) / "train.py"
        self.script.write_text(TRAINER)
        self.posted = 0

    def agents(self, nodes=1, slots=2, bin_dir=BIN, **options):
        made = agents.Agents(pathlib.Path(self.folder.name) / "spools", bin_dir, nodes, slots=slots, **options)
        made.environment["MODULE"] = str(MODULE)
        self.addCleanup(made.stop)
        return made.start()

    def post(self, it, argv, ranks=2, nodes=1, deadlines=None, attempt=None, **command):
        self.posted += 1
        body = {**agents.attempt(self.posted, ranks=ranks, nodes=nodes, deadlines=deadlines), **(attempt or {})}
        body["trial"].update(workload="command", gpus_per_node=ranks // nodes,
                             program=json.dumps({"argv": [str(word) for word in argv], **command}))
        it.post("attempt", body)
        return self.posted

    def run_trainer(self, it, mode="ok", steps=6, **more):
        number = self.post(it, [sys.executable, self.script, mode, steps], **more)
        end = it.end_of(number)
        self.assertTrue(end["clean"], end)
        records = {line["body"]["rank"]: line["body"] for line in it.lines("rank_record")
                   if line["body"]["attempt"] == number}
        exits = {line["body"]["rank"]: line["body"] for line in it.lines("rank_exit", number)}
        return end, records, exits

    def test_steps_of_each_rank_are_recorded(self):
        it = self.agents()
        end, records, _ = self.run_trainer(it)
        self.assertEqual((end["cause"], sorted(records)), ("done", [0, 1]))
        for record in records.values():
            self.assertEqual(record["outcome"], "ok", record)
            self.assertEqual(record["samples"]["step"], [1, 2, 3])  # the first one's beginning is unknown
            self.assertEqual(record["samples"]["tokens"], [100] * 3)
            self.assertTrue(all(ns >= 20e6 for ns in record["samples"]["step_ns"]), record)
            self.assertEqual(record["samples"]["loss"], [9.0, 8.0, 7.0])
            self.assertGreater(record["host_peak_rss_bytes"], 1 << 20)
        it.finish()

    def test_outcomes(self):
        it = self.agents()
        for mode, outcome in (("oom", "oom"), ("crash", "crash"), ("exit", "crash")):
            with self.subTest(mode):
                _, records, _ = self.run_trainer(it, mode)
                self.assertEqual(records[0]["outcome"], outcome, records[0])
                if mode != "exit":  # which loses what was not written yet
                    self.assertEqual(records[0]["step"], 2)
                if mode == "oom":
                    self.assertEqual(records[0]["oom_kind"], "host")
        for mode, number in (("kill", signal.SIGKILL), ("segv", signal.SIGSEGV)):
            with self.subTest(mode):
                end, records, exits = self.run_trainer(it, mode)
                self.assertEqual((end["cause"], exits[0]["signal"]), ("rank_failed", number))
                self.assertNotIn(0, records)
        it.finish()

    def test_a_rank_that_stops_reporting_is_a_hang(self):
        it = self.agents()
        end, _, _ = self.run_trainer(it, "hang", deadlines={"step_s": 1.5})
        self.assertEqual(end["cause"], "hang")
        it.finish()

    def test_children_that_left_session_and_parent_are_ended(self):
        it = self.agents()
        end, records, _ = self.run_trainer(it, "leave")
        self.assertEqual((end["cause"], records[0]["outcome"]), ("done", "ok"))
        it.finish()
        wait_for(lambda: not agents.marked(it.folder), 60, "no process is left")

    def test_what_the_command_sees(self):
        it = self.agents()
        show = "import json, os, sys; print(json.dumps([dict(os.environ), sys.argv[1:], os.getcwd(), open('deep/ds.json').read()]))"
        number = self.post(it, [sys.executable, "-c", show, "{rank}/{world}", "{{literal}}", "{files}", "$HOME; `id`"],
                           files={"deep/ds.json": '{{"port": {master_port}}}'}, env={"MINE": "{local_rank} of {local_world}"})
        self.assertEqual(it.end_of(number)["cause"], "done")
        ports = set()
        for rank in (0, 1):
            log = next(it.spool(0).glob(f"attempts/*/rank_{rank:05}.log")).read_text()
            env, argv, folder, text = json.loads(log.splitlines()[0])
            self.assertEqual(argv[:2] + argv[3:], [f"{rank}/2", "{literal}", "$HOME; `id`"])
            self.assertEqual(argv[2], folder)
            self.assertEqual(json.loads(text), {"port": int(env["MASTER_PORT"])})
            self.assertEqual([env[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MINE")],
                             [str(rank), str(rank), "2", "2", f"{rank} of 2"])
            ports.add((env["MASTER_ADDR"], env["MASTER_PORT"]))
        self.assertEqual(len(ports), 1)
        it.finish()

    def test_the_port_is_kept_free_for_the_trainer(self):
        it = self.agents(slots=1)
        serve = ("import os, socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); "
                 "s.bind(('127.0.0.1', int(os.environ['MASTER_PORT']))); s.listen(); "
                 "c = socket.create_connection(s.getsockname()); print('met')")
        number = self.post(it, [sys.executable, "-c", serve], ranks=1)
        self.assertEqual(it.end_of(number)["cause"], "done")
        self.assertIn("met", next(it.spool(0).glob("attempts/*/rank_00000.log")).read_text())
        it.finish()

    def test_one_process_a_node(self):
        """Like torchrun, the node's command starts the others, and each reports as its own rank."""
        it = self.agents()
        for mode, outcome in (("ok", "ok"), ("oom", "oom")):
            with self.subTest(mode):
                number = self.post(it, [sys.executable, "-c", LAUNCHER, self.script, mode, "6"], per_node=True,
                                   env={"WRONG": "1"})
                it.end_of(number)
                records = {line["body"]["rank"]: line["body"] for line in it.lines("rank_record")
                           if line["body"]["attempt"] == number}
                self.assertEqual(records[1]["outcome"], outcome, records)
                if mode == "ok":
                    self.assertEqual([len(each["samples"]["step"]) for each in records.values()], [3, 3])
        it.finish()

    def hung(self, it, words=(), **command):
        """The evidence of an attempt whose rank 1 sleeps in its fourth step: by rank."""
        number = self.post(it, [sys.executable, *words, self.script, "hang", "6"], deadlines={"startup_s": 60, "first_step_s": 60, "step_s": 1},
                           **{**command, "env": {"WRONG": "1", **command.get("env", {})}})
        end = it.end_of(number)
        self.assertEqual((end["cause"], end["clean"]), ("hang", True), end)
        return {each["rank"]: each for each in end["evidence"]["ranks"]}

    def test_a_hang_shows_where_each_rank_stands(self):
        """The trainer reports by the module `sweep_trial`."""
        it = self.agents()
        ranks = self.hung(it)
        self.assertRegex(ranks[1]["stacks"], r'"MainThread"\n +<module> \(.*train.py:\d+\)')
        self.assertIn("stacks", self.hung(it, ["-c", LAUNCHER], per_node=True)[1], "of a launcher's process too")
        it.finish()

    def py_spy(self, text):
        folder = pathlib.Path(self.folder.name) / "tools"
        folder.mkdir(exist_ok=True)
        (folder / "py-spy").write_text(f"#!/bin/sh\n{text}\n")
        (folder / "py-spy").chmod(0o755)
        return f"{folder}:/usr/bin:/bin"

    def test_a_hang_shows_what_py_spy_says(self):
        """It is looked for on the command's PATH, and may fail or last as it likes."""
        it = self.agents()
        path = self.py_spy('echo "$@" on `tr "\\0" " " </proc/$4/cmdline`')
        ranks = self.hung(it, env={"PATH": path})
        self.assertRegex(ranks[1]["stacks"], r"^dump --nonblocking --pid \d+ on .*train.py hang 6")
        for failing in ("exit 1", "exec sleep 1000"):
            with self.subTest(failing):
                ranks = self.hung(it, env={"PATH": self.py_spy(failing)})
                self.assertIn("MainThread", ranks[1]["stacks"], "the module's own instead")
        it.finish()

    def test_an_endless_trainer_is_stopped_after_its_steps(self):
        it = self.agents()
        end, records, _ = self.run_trainer(it, steps=100_000, stop_after_steps=True)
        self.assertEqual((end["cause"], [each["outcome"] for each in records.values()]), ("done", ["ok", "ok"]))
        it.finish()

    def test_a_trainer_that_only_logs(self):
        it = self.agents(slots=1)
        number = self.post(it, ["bash", "-c", "for i in 1 2 3 4; do echo step $i took $i.5 s; done"], ranks=1,
                           log_patterns={"step": "step ([0-9]+)", "step_s": "took ([0-9.]+)"})
        self.assertEqual(it.end_of(number)["cause"], "done")
        record = next(line["body"] for line in it.lines("rank_record") if line["body"]["attempt"] == number)
        self.assertEqual((record["outcome"], record["samples"]["step_ns"], record["effective"]["report"]),
                         ("ok", [1.5e9, 2.5e9, 3.5e9, 4.5e9], "from_log"))
        it.finish()

    def test_a_log_is_read_as_it_grows(self):
        self.ends_by_its_log(nodes=1)

    def test_a_log_of_one_node_ends_the_others_ranks(self):
        self.ends_by_its_log(nodes=2)

    def ends_by_its_log(self, nodes):
        """Its steps end an endless program. The silent rank ends too, and is no hang meanwhile."""
        it = self.agents(nodes=nodes, slots=2 // nodes)
        program = "[ $RANK = 0 ] || exec sleep 1000; i=0; while :; do i=$((i+1)); echo step $i took 0.01 s; sleep 0.2; done"
        number = self.post(it, ["bash", "-c", program], stop_after_steps=True, nodes=nodes, deadlines={"startup_s": 2, "step_s": 10},
                           attempt={"measure": {"warmup_steps": 1, "steps": 14, "repeats": 1}},
                           log_patterns={"step": "step ([0-9]+)", "step_s": "took ([0-9.]+)"})
        end = it.end_of(number)
        records = {line["body"]["rank"]: line["body"] for line in it.lines("rank_record") if line["body"]["attempt"] == number}
        self.assertEqual((end["cause"], end["clean"], [records[rank]["outcome"] for rank in (0, 1)]), ("done", True, ["ok", "ok"]), records)
        self.assertEqual([records[rank]["samples"]["step"] for rank in (0, 1)], [list(range(15)), []])
        it.finish()

    def test_a_complete_run_that_does_not_exit_is_ended(self):
        it = self.agents(slots=1)
        script = self.script.with_name("lingers.py")
        script.write_text("import os, sys, time\nsys.path.insert(0, os.environ['MODULE'])\nimport sweep_trial\n"
                          "for each in range(6): sweep_trial.step(), time.sleep(0.01)\nsweep_trial.report().end()\ntime.sleep(1000)\n")
        number = self.post(it, [sys.executable, script], ranks=1, deadlines={"step_s": 2})
        end = it.end_of(number)
        record = next(line["body"] for line in it.lines("rank_record") if line["body"]["attempt"] == number)
        self.assertEqual((end["cause"], end["clean"], record["outcome"], record["samples"]["step"]), ("done", True, "ok", [1, 2, 3]))
        it.finish()

    def test_two_nodes(self):
        it = self.agents(nodes=2, slots=1)
        end, records, _ = self.run_trainer(it, ranks=2, nodes=2)
        self.assertEqual((end["cause"], sorted(records)), ("done", [0, 1]))
        it.finish()

    def stops_early(self, nodes):
        bounded = {"stop_above_ms": 1.0, "measure": {"warmup_steps": 1, "steps": 3000, "repeats": 1}}  # steps take 20 ms and more
        it = self.agents(nodes=nodes, slots=2 // nodes)
        end, records, _ = self.run_trainer(it, steps=3000, ranks=2, nodes=nodes, attempt=bounded)
        self.assertEqual((end["cause"], [records[rank]["outcome"] for rank in (0, 1)]), ("done", ["ok", "ok"]), records)
        timed = [len(records[rank]["samples"]["step"]) for rank in (0, 1)]
        self.assertTrue(all(6 <= each < 2999 for each in timed), timed)
        it.finish()

    def test_a_command_that_is_clearly_slow_stops_early(self):
        self.stops_early(nodes=1)

    def test_a_command_on_two_nodes_stops_early(self):
        self.stops_early(nodes=2)

    def test_commands_that_cannot_start(self):
        it = self.agents(slots=1)
        for argv in (["/nowhere/train"], [sys.executable, "-c", "", "{seed}"]):
            with self.subTest(argv):
                number = self.post(it, argv, ranks=1)
                it.end_of(number)
                record = next(line["body"] for line in it.lines("rank_record") if line["body"]["attempt"] == number)
                self.assertEqual((record["outcome"], record["phase"]), ("crash", "init"))
        it.finish()

    def test_a_folder_that_is_missing_is_the_fault_of_the_host(self):
        it = self.agents(slots=1)
        end = it.end_of(self.post(it, ["true"], ranks=1, folder="/nowhere"))
        self.assertEqual((end["cause"], it.lines("rank_record")), ("agent_stopping", []), end)
        self.assertIn("/nowhere", end["evidence"]["why"])

    def test_hostile_reports(self):
        """Endless lines, wrong types and time that goes backwards: counted, skipped, never believed."""
        it = self.agents(slots=1)
        write = ("import os\nf = open(os.environ['SWEEP_RESULTS_FILE'], 'a')\n"
                 "f.write('x' * 70000 + '\\n')\n"
                 "for step in (1, 2, 2, 1, 3, -4, 10**30): f.write('{\"kind\":\"step\",\"step\":%d,\"ms\":5}\\n' % step)\n"
                 "f.write('{\"kind\":\"step\",\"step\":4,\"ms\":-5}\\n[1]\\n{\"kind\":\"step\",\"step\":\"5\"}\\n')\n"
                 "for i in range(40): f.write('y' * 1000000)\n"
                 "f.write('\\n{\"kind\":\"step\",\"step\":4,\"ms\":6}\\n')\n")
        script = self.script.with_name("hostile.py")
        script.write_text(write)
        number = self.post(it, [sys.executable, script], ranks=1)
        self.assertEqual(it.end_of(number)["cause"], "done")
        record = next(line["body"] for line in it.lines("rank_record") if line["body"]["attempt"] == number)
        self.assertEqual((record["outcome"], record["samples"]["step"], record["samples"]["step_ns"]),
                         ("ok", [0, 1, 2, 3], [5e6, 5e6, 5e6, 6e6]))
        self.assertEqual(record["effective"]["damaged_lines"], 9)
        it.finish()

    def test_endless_output(self):
        """A line of a gigabyte, and lines without end beside it: the log stays within its limit, and the steps are counted."""
        it = self.agents(slots=1)
        write = ("import os, sys\nsys.path.insert(0, os.environ['MODULE'])\nimport sweep_trial\nsweep_trial.step()\n"
                 "piece = b'x' * (1 << 24)\n"
                 "for each in range(64): os.write(1, piece)\n"
                 "for each in range(200): os.write(1, b'\\nstep 9 took 1 s' * 100000)\n"
                 "for each in range(4): sweep_trial.step()\n")
        script = self.script.with_name("endless.py")
        script.write_text(write)
        number = self.post(it, [sys.executable, script], ranks=1, log_patterns={"step": "step ([0-9]+)", "step_s": "took ([0-9.]+)"})
        self.assertEqual(it.end_of(number, 300)["cause"], "done")
        record = next(line["body"] for line in it.lines("rank_record") if line["body"]["attempt"] == number)
        self.assertEqual((record["outcome"], record["effective"]["report"]), ("ok", "lines"))
        logs = list(it.folder.rglob("*.log"))
        self.assertTrue(logs)
        for log in logs:
            self.assertLess(log.stat().st_blocks * 512, 64 << 20, log)
        it.finish()

    def test_steps_behind_a_line_of_a_gigabyte(self):
        it = self.agents(slots=1)
        write = ("import os\npiece = b'x' * (1 << 24)\nfor each in range(64): os.write(1, piece)\n"
                 "for each in range(1, 5): os.write(1, b'\\nstep %d took 1 s' % each)\n")
        number = self.post(it, [sys.executable, "-c", write], ranks=1, log_patterns={"step": "step ([0-9]+)", "step_s": "took ([0-9.]+)"})
        self.assertEqual(it.end_of(number, 300)["cause"], "done")
        record = next(line["body"] for line in it.lines("rank_record") if line["body"]["attempt"] == number)
        self.assertEqual((record["outcome"], record["samples"]["step"]), ("ok", [0, 1, 2, 3]))
        it.finish()

    def test_words_of_a_command_reach_no_shell(self):
        """Substitutions, quotes, separators and options in words, names of files and variables: the program gets them as they are."""
        it = self.agents(slots=1)
        hostile = ["$(touch pwned)", "`touch pwned`", "; touch pwned #", "' ; touch pwned ; '", '" && touch pwned', "| touch pwned", "\n touch pwned",
                   "--spool=/", "${HOME}", "%s%n", "../../pwned", "\u202e\U0001f600"]
        script = self.script.with_name("words.py")
        script.write_text("import json, os, sys\nsys.path.insert(0, os.environ['MODULE'])\nimport sweep_trial\n"
                          "json.dump([sys.argv[1:], os.environ['HOSTILE']], open(os.environ['SAID'], 'w'))\nsweep_trial.step(), sweep_trial.step()\n")
        said = self.script.with_name("said.json")
        words = [word.replace("{", "{{").replace("}", "}}") for word in hostile]
        number = self.post(it, [sys.executable, script, *words], ranks=1, folder=self.folder.name,
                           env={"HOSTILE": "$(touch pwned)", "SAID": str(said)})
        self.assertEqual(it.end_of(number)["cause"], "done")
        self.assertEqual(json.loads(said.read_text()), [hostile, "$(touch pwned)"])
        self.assertFalse(list(pathlib.Path(self.folder.name).rglob("pwned*")))
        it.finish()

    def test_an_agent_without_a_rank_program_runs_commands_alone(self):
        it = self.agents(rank=None)
        end, records, _ = self.run_trainer(it)
        self.assertEqual((end["cause"], records[0]["outcome"]), ("done", "ok"))
        self.assertFalse([words for words in agents.marked(it.folder).values() if "zygote" in words])
        self.posted += 1
        it.post("attempt", agents.attempt(self.posted))
        self.assertEqual(it.end_of(self.posted)["cause"], "start_failed")
        it.finish()

    def test_an_agent_whose_program_was_replaced_still_runs_commands(self):
        """A build or an upgrade during a sweep does this."""
        copied = pathlib.Path(self.folder.name) / "bin"
        copied.mkdir()
        shutil.copy2(BIN / "sweep-agent", copied)
        it = self.agents(bin_dir=copied, rank=None)
        (copied / "sweep-agent").unlink()
        end, records, _ = self.run_trainer(it)
        self.assertEqual((end["cause"], records[0]["outcome"]), ("done", "ok"))
        it.finish()


if __name__ == "__main__":
    unittest.main(verbosity=2)
