"""A finished sweep of fake ranks, altered so that it holds what exports must get right: an out-of-memory trial, a loss that is
no number, labels, a pruned trial; and the values an export of it must bring, read from the database by plain SQL."""
import math
import pathlib
import re
import sqlite3
import subprocess

FIELDS = pathlib.Path(__file__).resolve().parents[2] / "schema" / "fields.def"
FLAGS = set(re.findall(r"^AXIS\(flag, (\w+),", FIELDS.read_text(), re.MULTILINE))
NAME = "exported-sweep.1"
GRID = f"""name: '{NAME}'
question: Does <b>every</b> value arrive?
model: {{family: llama, name: "t<i>'", layers: 1, hidden_size: 32, heads: 2, kv_heads: 2, intermediate_size: 64,
        vocab_size: 64}}
base: {{hardware: cpu, gpus_per_node: 2, seq_len: 16, global_batch_size: 8}}
grid: {{micro_batch_size: [1, 2, 3, 4]}}
derive: {{tokens_per_rank: "seq_len * micro_batch_size"}}
measure: {{warmup_steps: 1, steps: STEPS}}
"""


def make(bin_dir, folder, steps=5):
    """The database; three trials of four have a result (3 does not divide 8)."""
    db, grid = folder / "r.db", folder / "grid.yaml"
    grid.write_text(GRID.replace("STEPS", str(steps)))
    done = subprocess.run([bin_dir / "sweep", "run", grid, "--db", db, "--on", "local", "--rank", bin_dir / "fake_rank"],
                          capture_output=True, text=True, timeout=120, cwd=folder)
    assert done.returncode == 0, done.stderr
    connection = sqlite3.connect(db)
    with connection:
        first, second = [a for (a,) in connection.execute("select id from attempt order by id limit 2")]
        connection.execute("update result set outcome = 1, reason = 'rank 1 asked for 5 GB', mfu = null where attempt = ?", (first,))
        connection.execute("update plan_entry set outcome = 1 where final_attempt = ?", (first,))
        connection.execute("update step_sample set loss = null where attempt = ? and step = 2", (second,))
    connection.close()
    return db


def correct(db, tokens_per_s=4321.5):
    """Other numbers for the same result, as a corrected formula gives: (trial, tokens_per_s)."""
    connection = sqlite3.connect(db)
    with connection:
        attempt, trial = connection.execute("select r.attempt, t.id from result r join plan_entry p on p.final_attempt = r.attempt "
                                            "join trial t on t.key = p.trial where r.outcome = 0 limit 1").fetchone()
        connection.execute("update result set tokens_per_s = ? where attempt = ?", (tokens_per_s, attempt))
    connection.close()
    return trial, tokens_per_s


def columns(connection, table, without):
    return [name for _, name, *_ in connection.execute(f"pragma table_info({table})") if name not in without]


def number(value):
    return math.nan if value is None else value


def history(connection, attempt):
    """The steps of all ranks combined, by step."""
    found = connection.execute(
        "select max(step_ns) / 1e6, max(forward_ns) / 1e6, max(backward_ns) / 1e6, max(optimizer_ns) / 1e6, "
        "case when count(exposed_comm_ns) = count(*) then max(exposed_comm_ns) / 1e6 end, sum(tokens), "
        "case when count(loss) = count(*) then avg(loss) end, sum(alloc_retries), max(warmup), repeat "
        "from step_sample where attempt = ? group by repeat, step order by repeat, step", (attempt,))
    keys = ("step_ms", "forward_ms", "backward_ms", "optimizer_ms", "exposed_comm_ms", "tokens", "loss", "alloc_retries",
            "warmup", "repeat")
    out = []
    for row in found:
        line = {f"steps/{k}": v for k, v in zip(keys, row) if k == "loss" or (v is not None and (v or not k.endswith("_ms")))}
        line["steps/loss"] = number(line["steps/loss"])
        out.append(line)
    return out


def expected(db):
    """trial -> {"params", "metrics", "texts", "history", "outcome", "reason"}."""
    connection = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    axes = ["model", *columns(connection, "trial", ("key", "id", "spec", "program"))]
    metrics = columns(connection, "result", ("attempt", "outcome", "oom_kind", "reason", "rank", "phase", "evidence",
                                             "finished_unix_ns"))
    out = {}
    for row in connection.execute("select * from results where outcome is not null and outcome <> 'pruned'").fetchall():
        attempt, = connection.execute("select final_attempt from plan_entry p join trial t on t.key = p.trial where t.id = ?",
                                      (row["trial"],)).fetchone()
        params = {a: bool(row[a]) if a in FLAGS else row[a] for a in axes if row[a] not in (None, "")}  # a text not given is not sent
        params |= {"trial": row["trial"], "sweep": NAME, "label/tokens_per_rank": 16 * row["micro_batch_size"]}
        values = {m: row[m] for m in metrics if row[m] not in (None, "")}
        out[row["trial"]] = {"params": params, "metrics": {k: v for k, v in values.items() if not isinstance(v, str)},
                             "texts": {k: v for k, v in values.items() if isinstance(v, str)},
                             "history": history(connection, attempt), "outcome": row["outcome"], "reason": row["reason"] or ""}
    connection.close()
    assert len(out) == 3 and {r["outcome"] for r in out.values()} == {"ok", "oom"}, out
    return out


def same(a, b):
    """Equal, where NaN equals NaN and a number is the same number."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, bool) or isinstance(b, bool) or isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return a == b
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-12)


def difference(a, b, path=""):
    """The differences of two states, for people."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [line for k in {**a, **b} for line in difference(a.get(k, "(nothing)"), b.get(k, "(nothing)"), f"{path}/{k}")]
    return [] if same(a, b) else [f"{path}: {a!r} and {b!r}"]


def assert_same(a, b):
    parted = difference(a, b)
    assert not parted, "\n  ".join(["they differ:", *parted[:12]])
