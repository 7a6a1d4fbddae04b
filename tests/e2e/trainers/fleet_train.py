"""A trainer without PyTorch that fails on request: fleet_train.py SCRIPT STEPS STEP_MS NODE. SCRIPT is a name of fleet_sweep.SCRIPTS, which
the last rank plays in its second step. Without RANK it is a launcher: it starts the ranks of its node and ends as the first of them that
fails."""
import os
import signal
import subprocess
import sys
import time

SCRIPT, STEPS, STEP_MS, NODE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])


def launch(local):
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": str(NODE * local + each), "LOCAL_RANK": str(each)})
             for each in range(local)]
    left = set(ranks)
    while left:
        pid, status = os.wait()
        ended = next((each for each in left if each.pid == pid), None)
        left.discard(ended)
        if ended and status != 0:
            for each in left:
                each.kill()
            return os.waitstatus_to_exitcode(status) % 256
    return 0


def misbehave():
    if SCRIPT == "oom":
        raise MemoryError("as much as there is")
    if SCRIPT == "exception":
        raise ValueError("a fault of the script")
    if SCRIPT == "crash_exit":
        os._exit(3)
    if SCRIPT == "crash_signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    if SCRIPT == "hang_ignore_sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if SCRIPT.startswith("hang"):
        time.sleep(10_000)
    if SCRIPT == "double_fork":
        subprocess.Popen(["setsid", "sleep", "10000"])


def main():
    if "RANK" not in os.environ:
        return launch(int(os.environ["SWEEP_LOCAL_WORLD"]))
    import sweep_trial
    last = int(os.environ["RANK"]) == int(os.environ["SWEEP_WORLD"]) - 1
    for step in range(STEPS):
        if step == 1 and last:
            misbehave()
        time.sleep(STEP_MS / 1000)
        sweep_trial.step(tokens=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
