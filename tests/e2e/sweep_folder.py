"""A folder in which a test case types commands of sweep."""
import pathlib
import subprocess
import tempfile
import unittest


class SweepFolder(unittest.TestCase):
    bin: pathlib.Path  # the folder of the program

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sweep-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def words(self, *words):
        return [str(self.bin / "sweep"), *map(str, words)]

    def sweep(self, *words, code=0):
        done = subprocess.run(self.words(*words), capture_output=True, text=True, timeout=300, cwd=self.folder)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}\n{done.stderr}")
        return done.stdout
