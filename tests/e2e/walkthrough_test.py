#!/usr/bin/env python3
"""walkthrough_test.py BIN_DIR: docs/trainers.md, "From a torchrun line to a heatmap", literally: its commands, one after another, in a clean
folder that has nothing but a training script, with the one edit that it asks for."""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
HERE = pathlib.Path(__file__).resolve().parent
GUIDE = (HERE.parents[1] / "docs" / "trainers.md").read_text()
SECTION = "## From a torchrun line to a heatmap"


def commands():
    """The lines of the section's shell blocks."""
    section = GUIDE.split(SECTION + "\n")[1].split("\n## ")[0]
    return [line.strip() for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines() if line.strip()]


@unittest.skipIf(importlib.util.find_spec("torch") is None, "PyTorch is not installed")
class WalkthroughTest(unittest.TestCase):
    def test_the_guide_as_it_stands(self):
        folder = tempfile.TemporaryDirectory(prefix="sweep-walkthrough-")
        self.addCleanup(folder.cleanup)
        here = pathlib.Path(folder.name)
        shutil.copy(HERE / "trainers" / "plain_train.py", here / "train.py")
        surroundings = {**os.environ, "PATH": os.pathsep.join([str(BIN), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]),
                        "CUDA_VISIBLE_DEVICES": ""}
        surroundings.pop("SWEEP_DB", None)
        begun = time.monotonic()
        for line in commands():
            if line == "sweep plan grid.yaml":  # step 3: the edit
                grid = here / "grid.yaml"
                text = re.sub(r"# lr: \[.*\]", "lr: [3e-4, 1e-3]", grid.read_text())
                self.assertIn("lr: [3e-4, 1e-3]", text)
                grid.write_text(text)
            done = subprocess.run(["bash", "-c", line], cwd=here, env=surroundings, capture_output=True, text=True, timeout=1200)
            self.assertEqual(done.returncode, 0, f"{line}: {done.stdout}\n{done.stderr}")
            print(f"{time.monotonic() - begun:6.1f} s  {line}", flush=True)
        self.assertTrue((here / "heatmap.html").exists())
        rows = json.loads(subprocess.run([BIN / "sweep", "export", "json"], cwd=here, env=surroundings, capture_output=True, check=True).stdout)
        self.assertEqual([(row["outcome"], row["timed_steps"], row["gpus_per_node"]) for row in rows], [("ok", 6, 2)] * 4)
        self.assertEqual(len({(row["micro_batch_size"], row["labels"]["lr"]) for row in rows}), 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
