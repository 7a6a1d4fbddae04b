#!/usr/bin/env python3
"""vtrain_layers.py SWEEP vtrain.csv: what bounds the choice among vTrain's rows (scripts/predict_vtrain.py, docs/measurements/2026-11-30-vtrain.md).
The rows are composed of the time of one layer for each width, tp and micro-batch. Printed are these times, and the loss by the predicted best
(profile fsdp2): of all rows, by the layer that the best row is made of, and once more with each layer's time raised to at least that of half as many
sequences. Then the loss by the rows themselves, if those layers that wait for the host were measured again."""
import collections
import math
import random
import statistics
import sys
import tempfile

from predict_accuracy import Tool
from predict_vtrain import ON, cells_of, read

DRAWS = 500


def layer_of(row):
    return tuple(int(row[k]) for k in ("hidden_size", "tp", "mbs"))


def layers_on_the_way(row):
    """how often the time of a layer counts in a step: on one stage for each micro-batch, and once more on each stage before"""
    return int(row["layers"]) / int(row["pp"]) * (int(row["gas"]) + int(row["pp"]) - 1)


def layer_times(rows):
    """Slopes over micro-steps, and of these over layers; where all rows have one number of micro-steps, over layers alone: then with the update."""
    by_gas: dict[tuple, dict] = collections.defaultdict(dict)
    for r in rows:
        by_gas[layer_of(r), r["pp"], r["dp"], int(r["layers"])][int(r["gas"])] = float(r["step_ms"])
    times: dict[tuple, list] = collections.defaultdict(list)
    for (layer, pp, dp, layers), steps in by_gas.items():
        fewer = by_gas.get((layer, pp, dp, layers - 12))
        if not fewer:
            continue
        first, last = min(steps), max(steps)
        slope = (lambda s: (s[last] - s[first]) / (last - first)) if last > first else (lambda s: s[first] / (first + int(pp) - 1))
        times[layer].append((dp != "1" or last == first, (slope(steps) - slope(fewer)) * int(pp) / 12))
    return {layer: min(found)[1] for layer, found in times.items()}


def losses(rows, step_ms):
    """by cell: the row that is the best, and what the predicted best costs beside it"""
    for cell in cells_of(rows):
        best = min(cell, key=step_ms)
        yield best, step_ms(min(cell, key=lambda r: float(r["predicted_step_s"]))) / step_ms(best) - 1


def mean_loss(rows, step_ms):
    return 100 * statistics.mean(loss for _, loss in losses(rows, step_ms))


def moved(times, other):
    """the step of a row after its layers took another time"""
    return lambda r: float(r["step_ms"]) + (other[layer_of(r)] - times[layer_of(r)]) * layers_on_the_way(r)


def waits_for_the_host(layer):
    hidden, tp, mbs = layer
    return mbs <= 4 and mbs * hidden ** 2 <= 2 * tp * 1024 ** 2


def deviation(times):
    """of the logarithm of one time, by pairs of layers that wait for the host and differ in sequences alone"""
    pairs = [(times[layer], times[(*layer[:2], 2 * layer[2])]) for layer in times if waits_for_the_host((*layer[:2], 2 * layer[2]))]
    return math.sqrt(statistics.mean(math.log(more / less) ** 2 for less, more in pairs) / 2)


def main():
    rows = read(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        rows = Tool(sys.argv[1], folder).predict(rows, *ON, "--profile", "fsdp2")
    times = layer_times(rows)
    print("| columns | tp | 1 sequence, ms | 2 | 4 | 8 |\n|---|---|---|---|---|---|")
    for hidden, tp in sorted({layer[:2] for layer in times}):
        print(f"| {hidden} | {tp} | " + " | ".join(f"{times[hidden, tp, mbs]:.2f}" for mbs in (1, 2, 4, 8)) + " |")
    raised = dict(times)
    for layer in sorted(times):
        raised[layer] = max(times[layer], raised.get((*layer[:2], layer[2] // 2), 0))
    as_published = moved(times, times)
    print(f"\nloss by the predicted best: {mean_loss(rows, as_published):.1f} %, with layers raised: {mean_loss(rows, moved(times, raised)):.1f} %")
    by_layer: dict[tuple, list] = collections.defaultdict(list)
    for best, loss in losses(rows, as_published):
        by_layer[layer_of(best)].append(100 * loss)
    for layer, found in sorted(by_layer.items(), key=lambda item: -sum(item[1])):
        print(f"best of layer {layer}: {len(found)} cells, {statistics.mean(found):.1f} %")
    told = [r | {"predicted_step_s": moved(times, raised)(r)} for r in rows]
    print(f"a prediction that is right but for layers raised: {mean_loss(told, as_published):.1f} %")
    waiting, off = [layer for layer in times if waits_for_the_host(layer)], deviation(times)
    rng, right = random.Random(2026), [r | {"predicted_step_s": r["step_ms"]} for r in rows]
    draws = [times | {layer: times[layer] * math.exp(rng.gauss(0, off)) for layer in waiting} for _ in range(DRAWS)]
    drawn = sorted(mean_loss(right, moved(times, again)) for again in draws)
    print(f"{len(waiting)} layers wait for the host, deviation {100 * off:.0f} %: the rows themselves lose, measured again, "
          f"{statistics.mean(drawn):.1f} % ({drawn[DRAWS // 20]:.1f} to {drawn[-DRAWS // 20]:.1f} in nine of ten draws)")


if __name__ == "__main__":
    main()
