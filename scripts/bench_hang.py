"""Figure of scripts/bench: how long a node stands idle after a hang, beyond the deadline that finds it."""
import os
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
HANGS, DEADLINE_S, RANKS = 50, 3.0, 8
STARTS_SQL = "select t.seq_len, a.started_unix_ns / 1e9 from attempt a join plan_entry p on p.key = a.entry join trial t on t.key = p.trial order by 2"


def gaps(sweep):
    """For every hang that another trial followed: (script, seconds from its ranks' start to the next start, less the deadline)."""
    scripts = {length: script for length, script, _ in sweep.trials}
    starts = sweep.rows(STARTS_SQL)
    return [(scripts[length], after - begun - DEADLINE_S) for (length, begun), (_, after) in zip(starts, starts[1:])]


def after_a_hang(emit, build):
    sys.path.insert(0, str(ROOT / "tests" / "e2e"))
    import fleet_sweep
    from cluster import fleet
    with tempfile.TemporaryDirectory(prefix="sweep-bench-hang-") as folder, fleet.SlurmFleet(folder, nodes=1, most=1) as own:
        trials = [("hang" if i % 2 else "hang_ignore_sigterm", 1) for i in range(HANGS + 1)]
        rank = build / "bin" / "fake_rank"
        sweep = fleet_sweep.Sweep(own, build / "bin", rank, "hangs", trials, ranks_per_node=RANKS, hang_seconds=DEADLINE_S)
        code = sweep.start().wait(1800)
        sweep.check_end()
        sweep.check_answers()
        found = gaps(sweep)
    if code != 1 or len(found) != HANGS:
        sys.exit(f"bench: exit {code}, {len(found)} gaps where {HANGS} were expected")
    by_script = {script: statistics.median(gap for each, gap in found if each == script) for script in {each for each, _ in found}}
    everything = sorted(gap for _, gap in found)
    middle = statistics.median(everything)
    emit("n", name=f"from a hang's deadline ({DEADLINE_S:g} s) to the next trial's start, {RANKS} ranks, median of {HANGS}", value=middle,
         unit="s", goal="<= 2", met=middle <= 2, worst=everything[-1], by_script=by_script, command="scripts/bench n", load=os.getloadavg())
