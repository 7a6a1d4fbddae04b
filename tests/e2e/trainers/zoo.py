"""A program that goes wrong, or looks so, in one way: zoo.py CASE [RANK]. Without PyTorch; those with it are in zoo_torch.py."""
import json
import os
import signal
import subprocess
import sys
import time

case, STEPS = sys.argv[1], 8


def report(count=STEPS, pause=0.02, **fields):
    import sweep_trial
    for _ in range(count):
        time.sleep(pause)
        sweep_trial.step(tokens=64, **fields)


def log(count=STEPS, line="step {} took 20.0 ms"):
    for i in range(count):
        print(line.format(i + 1), flush=True)


def silent():
    print("nothing of interest")


def crash():
    report()
    if os.environ["RANK"] == "1":
        raise ValueError("a fault of rank 1")


def ignores_sigterm():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    report(3)
    while True:
        time.sleep(1)


def segv():
    report(3)
    os.kill(os.getpid(), signal.SIGSEGV)


def daemon():
    report()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
    os.wait()


def reexec():
    if "ZOO_AGAIN" not in os.environ:
        os.execve(sys.executable, [sys.executable, *sys.argv], dict(os.environ, ZOO_AGAIN="1"))
    report()


def slow_start():
    time.sleep(8)  # longer than hang_seconds
    report()


def reads_stdin():
    report(input())


def exit_137():
    report(3)
    os._exit(137)


def kills_itself():
    report(3)
    os.kill(os.getpid(), signal.SIGKILL)


def memory_error():
    report(3)
    raise MemoryError("no more")


def few_steps():
    report(2)


def nan_loss():
    report(loss=float("nan"))


def nan_in_json():
    with open(os.environ["SWEEP_RESULTS_FILE"], "a") as file:
        for i in range(STEPS):
            file.write(json.dumps({"kind": "step", "step": i + 1, "ms": 20.0, "loss": float("nan")}) + "\n")


def slow_exit():
    import sweep_trial
    report()
    sweep_trial.report().end()
    time.sleep(2)


def starts_itself_with_an_empty_environment():
    report()
    subprocess.Popen([sys.executable, "-c", "import os, time; os.setsid(); time.sleep(600)"], env={})


def log_of_rank_0():
    if os.environ["RANK"] == "0":
        log()


def log_of_few_steps():
    log(2)


def log_summary():
    print('training is over: {"step_ms": 61.5}')


def log_bar():
    for i in range(STEPS):
        print(f"\r{i + 1}/{STEPS} [00:00<00:00, 50.0it/s]", end="", flush=True)
    print()


def log_huge():
    chunk = ("x" * 1023 + "\n") * 1024
    for _ in range(46):
        sys.stdout.write(chunk)
    log()


globals()[case]()
