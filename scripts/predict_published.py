#!/usr/bin/env python3
"""predict_published.py SWEEP [published.csv]: `sweep predict` against tables that trainers' authors published (sweeps/data/published_training.csv),
each row under the profile that its trainer and hardware choose, or that it names (column profile), as the tables of
docs/measurements/2026-11-28-predictions.md; sweeps/data/published_held_out.csv as those of 2026-11-28-held-out.md."""
import collections
import csv
import pathlib
import statistics
import sys
import tempfile

from predict_accuracy import Tool, spearman

DATA = pathlib.Path(__file__).resolve().parent.parent / "sweeps/data/published_training.csv"
GIB = 1024.0 ** 3


def name(r):
    parts = [r["model"] or r["note"], f"{r['gpus']} GPUs"] + [f"{k} {r[k]}" for k in ("tp", "pp", "cp") if int(r[k] or 1) > 1]
    return ", ".join(parts + [f"{r['mbs']} x {r['seq_len']}", r["recompute"]] + ([r["note"]] if r["model"] and r["note"] else []))


def memory_table(rows):
    print("| table or hardware | configuration | published, GiB | predicted | |")
    print("|---|---|---|---|---|")
    off = []
    for r in rows:
        if not r["mem_gib"]:
            continue
        told = float(r["predicted_bytes"]) / GIB
        off.append(told / float(r["mem_gib"]) - 1)
        print(f"| {r.get('table') or r['hardware']} | {name(r)} | {r['mem_gib']} | {told:.1f} | {100 * off[-1]:+.0f} % |")
    near = sum(abs(o) <= 0.1 for o in off)
    print(f"\nWithin 10 %: {near} of {len(off)} ({100 * near / len(off):.0f} %).\n")


def order_and_errors(rows):
    """Spearman of the rates, median error, median error after one common factor; of rows that state a rate."""
    ratio = [float(r["predicted_tokens_per_s_gpu"]) / float(r["tok_s_gpu"]) for r in rows]
    if not ratio:
        return "- | - | -"
    middle = statistics.median(ratio)
    order = spearman([float(r["predicted_tokens_per_s_gpu"]) for r in rows], [float(r["tok_s_gpu"]) for r in rows])
    return (f"{order:.2f} | {100 * statistics.median(abs(x - 1) for x in ratio):.0f} % | "
            f"{100 * statistics.median(abs(x / middle - 1) for x in ratio):.0f} %")


def tables_of(told):
    """Rows of one table, or of one trainer, on one hardware: those of all its profiles share a factor."""
    tables: dict[tuple[str, str], list] = collections.defaultdict(list)
    for (table, trainer, _, hardware), rows in told.items():
        tables[table or trainer, hardware] += rows
    return tables


def time_table(tables):
    print("| table or trainer | hardware | ran | refused | said to be sure | failed, foretold | Spearman of rates | rate error, median | after one factor |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (name_of_table, hardware), rows in tables.items():
        ran, failed = [r for r in rows if r["status"] == "ok"], [r for r in rows if r["status"] != "ok"]
        refused = [r for r in ran if r["fits"] == "false"]
        print(f"| {name_of_table} | {hardware} | {len(ran)} | {len(refused)} | {sum(r['sure'] == 'yes' for r in refused)} | "
              f"{sum(r['fits'] == 'false' for r in failed)} of {len(failed)} | {order_and_errors([r for r in ran if r['tok_s_gpu']])} |")
        for r in refused:
            print(f"  - refused: {name(r)}: {r['reason']}", file=sys.stderr)


def main():
    sweep, data = sys.argv[1], pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else DATA
    groups = collections.defaultdict(list)
    with open(data, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            groups[row.get("table", ""), row["trainer"], row["profile"], row["hardware"]].append(row)
    with tempfile.TemporaryDirectory() as folder:
        tool, told = Tool(sweep, folder), {}
        for (table, trainer, profile, hardware), rows in groups.items():
            words = ["--profile", profile] if profile else ["--trainer", trainer]
            told[table, trainer, profile, hardware] = tool.predict(rows, *words, "--hardware", hardware)
    memory_table([r for rows in told.values() for r in rows])
    time_table(tables_of(told))


if __name__ == "__main__":
    main()
