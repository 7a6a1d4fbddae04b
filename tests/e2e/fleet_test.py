#!/usr/bin/env python3
"""fleet_test.py BIN FAKE_RANK slurm|ssh: 120 trials over one to four nodes of 8 fake GPUs, with every way a trial can go
wrong, a few of them with the genuine rank where it is built. Every verdict is the scripted one, no process is left on
any node, no node is drained."""
import collections
import pathlib
import sys
import tempfile

import fleet_sweep
from cluster import fleet, slurm, sshd

SECONDS = 420
# How many of each, the nodes going round 1, 2, 3, 4.
MIX = {"ok": 60, "oom": 10, "crash_exit": 6, "exception": 4, "crash_signal": 4, "unsupported": 4, "hang": 4,
       "hang_ignore_sigterm": 4, "double_fork": 8, "bare_daemon": 6, "huge_log": 6}
REAL_NODES = [1, 1, 1, 2]


def trials(rank):
    out = [(script, 1 + i % 4) for script, count in MIX.items() for i in range(count)]
    kind = "real" if fleet_sweep.has_real_rank(rank) else "ok"
    return out + [(kind, nodes) for nodes in REAL_NODES]


def table(sweep):
    """script -> outcomes and attempts, as text."""
    found, attempts = sweep.results(), sweep.attempts()
    rows = collections.defaultdict(list)
    for length, script, nodes in sweep.trials:
        rows[script].append((found.get(length), len(attempts.get(length, [])), nodes))
    lines = [f"{'script':20} {'trials':>6} {'attempts':>8}  outcomes"]
    for script, each in rows.items():
        outcomes = dict(collections.Counter(outcome for outcome, _, _ in each))
        lines.append(f"{script:20} {len(each):6} {sum(tries for _, tries, _ in each):8}  {outcomes}")
    return "\n".join(lines)


def play(own, sweep):
    code = sweep.start().wait(SECONDS)
    print(table(sweep), flush=True)
    assert code == 1, f"exit {code}; 1 expected, since some trials crash"
    sweep.check_end()
    sweep.check_answers()
    tries = {length: len(each) for length, each in sweep.attempts().items()}
    wrong = {(length, script): tries[length] for length, script, _ in sweep.trials
             if tries[length] != (2 if fleet_sweep.EXPECTED[script] == "crash" else 1)}
    assert not wrong, (f"trials with another number of attempts than 2 for a crash and 1 for the rest: {wrong}: "
                       f"{[each for length, _ in wrong for each in sweep.ends_of_attempts(length)]}")
    sweep.check_nodes()
    in_the_way = own.settle()
    assert not in_the_way, f"nodes that are not idle again: {in_the_way}"
    held = sweep.rows("select count(*), sum(ended_unix_ns - created_unix_ns) / 1e9 from allocation")[0]
    print(f"{own.kind}: {len(sweep.trials)} trials in {held[0]} allocations, held for {held[1]:.0f} s together; "
          f"0 processes left on {len(own.nodes)} nodes, 0 nodes drained", flush=True)


def main():
    bin_dir, rank, kind = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    make, needs = {"slurm": (fleet.SlurmFleet, slurm), "ssh": (fleet.SshFleet, sshd)}[kind]
    if needs.missing():
        print(f"skipped: this machine lacks {', '.join(needs.missing())}")
        return 77
    with tempfile.TemporaryDirectory(prefix=f"sweep-fleet-{kind}-") as folder, make(folder) as own:
        sweep = fleet_sweep.Sweep(own, bin_dir, rank, "fleet", trials(rank), ranks_per_node=fleet.GPUS, hang_seconds=12)
        with sweep.told():
            play(own, sweep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
