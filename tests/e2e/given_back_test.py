#!/usr/bin/env python3
"""given_back_test.py BIN FAKE_RANK: an agent that lost a node takes no more attempts, and one of its trials runs on for
seconds. What it is handed meanwhile comes back once; it does not go to and fro until that trial ends."""
import os
import pathlib
import signal
import sys
import tempfile

import fleet_sweep
from cluster import daemons, fleet, proc, sshd

SINGLES = 24
# The first needs every node and fails at once; its second attempt waits until the one that hangs is over.
TRIALS = [("crash_exit", 4), ("hang", 1)] + [("ok", 1)] * SINGLES
HANDED_AHEAD = 16  # attempts that may come back: what four nodes hold and their inbox


def beside(own):
    """A node's agent that no rank runs under, once the hanging trial is all that runs; None: not yet."""
    roles = own.roles()
    busy = {proc.attempt_of(pid)[0] for pid in roles.get("rank", [])}
    free = [pid for pid in roles.get("node", []) if proc.attempt_of(pid)[0] not in busy]
    return free[0] if len(busy) == 1 and len(free) > 1 else None


def victim(own, sweep):
    """The same, once every other trial has a result and the second attempt of the largest one waits for its nodes."""
    waits = sweep.planned() and len(sweep.results()) == len(TRIALS) - 1 and len(sweep.attempts().get(64, [])) == 2
    return beside(own) if waits else None


def play(own, sweep):
    process = sweep.start()
    pid = daemons.wait_for(lambda: victim(own, sweep), 60, "the second attempt of the largest trial")
    os.kill(pid, signal.SIGKILL)
    code = process.wait(120)
    assert code == 1, f"exit {code}; 1 expected, since a trial crashes"
    sweep.check_end()
    sweep.check_answers()
    sweep.check_nodes()
    attempts = sum(len(each) for each in sweep.attempts().values())
    back = sweep.rows("select count(*) from event where kind = 'agent' and text like '%gets no more work%'")[0][0]
    print(f"{attempts} attempts for {len(TRIALS)} trials, {back} allocation gave work back", flush=True)
    assert back >= 1, "no allocation gave work back: the test struck nothing"
    assert attempts <= len(TRIALS) + HANDED_AHEAD, f"{attempts} attempts for {len(TRIALS)} trials"


def main():
    bin_dir, rank = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    if sshd.missing():
        print(f"skipped: this machine lacks {', '.join(sshd.missing())}")
        return 77
    with tempfile.TemporaryDirectory(prefix="sweep-back-") as folder, fleet.SshFleet(folder) as own:
        sweep = fleet_sweep.Sweep(own, bin_dir, rank, "back", TRIALS, ranks_per_node=1, hang_seconds=15)
        with sweep.told():
            play(own, sweep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
