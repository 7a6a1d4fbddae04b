#!/usr/bin/env python3
"""tutorials_test.py BIN_DIR: the tutorials by role, as they stand, each in a folder of its own with what its reader has: a Python with
PyTorch, a Slurm of two nodes, phantom GPUs. Prints how long each took. Further words choose cases. The trials of the torchrun page run under
trainers/torchrun.py, whose ranks share one import of PyTorch; the line that the page wraps runs under the genuine one."""
import importlib.util
import os
import pathlib
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "checks"))
import check_readme  # noqa: E402  (found by the line above)
import sweep_folder  # noqa: E402
from cluster import slurm  # noqa: E402

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
REPOSITORY = HERE.parents[1]


class TutorialsTest(sweep_folder.SweepFolder):
    def setUp(self):
        super().setUp()
        (self.folder / "work").mkdir()

    def follow(self, page, more=None, path=None):
        """Runs the page as a person without settings would; every command must do what the page shows."""
        for name in ("SWEEP_DB", "SWEEP_SITE"):
            os.environ.pop(name, None)
        surroundings = {"HOME": str(self.folder), **(more or {})}
        begun = time.monotonic()
        problems, ran = check_readme.problems_of(f"docs/{page}.md", path or BIN, self.folder / "work", surroundings)
        print(f"{page}: {ran} commands in {time.monotonic() - begun:.0f} s", flush=True)
        self.assertEqual(problems, [], "\n".join(problems))
        self.assertGreater(ran, 5)

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "PyTorch is not installed")
    def test_a_torchrun_line(self):
        programs = self.folder / "programs"
        programs.mkdir()
        (programs / "torchrun").symlink_to(HERE / "trainers" / "torchrun.py")
        self.follow("tutorial-torchrun", {"CUDA_VISIBLE_DEVICES": ""}, path=f"{BIN}:{programs}:{pathlib.Path(sys.executable).parent}")
        self.assertTrue((self.folder / "work" / "heatmap.html").exists())

    @unittest.skipIf(slurm.missing(), "no Slurm on this machine")
    def test_a_slurm_cluster(self):
        with slurm.Cluster(self.folder / "cluster", nodes=2) as cluster:
            self.follow("tutorial-slurm", {"SLURM_CONF": cluster.environment["SLURM_CONF"]})
            self.assertEqual(cluster.jobs("PENDING,RUNNING"), [], "jobs are left")

    @unittest.skipUnless((BIN.parent / "phantom").is_dir(), "the phantom GPUs are not built")
    def test_no_gpu(self):
        self.follow("tutorial-no-gpu")


if __name__ == "__main__":
    unittest.main(verbosity=2)
