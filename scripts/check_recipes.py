#!/usr/bin/env python3
"""check_recipes.py BIN_DIR [RECIPE=FOLDER...] [--count N] [--seed N]: do the trainers understand what the recipes write?

Random configurations of every axis are planned through each recipe, and what it renders (command line, files) is given to the trainer's
own parser, with the trainer's own checks of it; afterwards the parsed degrees and batch sizes are compared with the trial's. Axes that a
recipe does not read are named in a variable, as a script would read them. Nothing is trained. FOLDER is the trainer's source, for those that are not installed: megatron=/path/to/Megatron-LM, nanotron=/path/to/nanotron/src,
torchtitan=/path/to/torchtitan. A recipe whose parser cannot be imported is skipped, and the reason printed. Exit code 1: something was
refused, or read as another number, or fewer configurations than --count were found."""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import memory_accuracy

REPO = pathlib.Path(__file__).resolve().parent.parent
PARSERS = REPO / "scripts" / "recipe_parsers.py"
# --no-rope-fusion: Transformer Engine is not needed to parse.
MEGATRON = ["--mock-data", "--tokenizer-type", "NullTokenizer", "--vocab-size", "128256", "--no-rope-fusion"]
WORKLOADS: dict[str, dict] = {
    "torchtitan": {}, "megatron": {"arguments": MEGATRON},
    "nanotron": {"files": {"config.yaml": {"from": "base.yaml"}}}, "huggingface": {"script": "train.py"},
    "lightning": {"script": "train.py"}, "deepspeed": {"script": "train.py"},
}


def planned(sweep, recipe, count, seed):
    """Plan entries of random configurations that the recipe can express, and how many it cannot."""
    draw = random.Random(seed)
    found: dict[str, dict] = {}
    refused: collections.Counter = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "base.yaml").write_text((REPO / "examples/nanotron/base.yaml").read_text().replace("is_llama_config: true, ", ""))  # the recipe says which
        for _ in range(40):
            points = [memory_accuracy.point(draw) for _ in range(200)]
            models: dict[str, str] = {}
            rows: list[dict] = []
            for point in points:
                name = models.setdefault(json.dumps(point["model"], sort_keys=True), f"m{len(models)}")
                rows.append({**{key: value for key, value in point.items() if key != "model"}, "hardware": "h100-sxm-80gb", "model": name})
            grid = {"name": "recipes", "workload": {"recipe": recipe, "env": {"AXES": " ".join(f"{{{name}}}" for name in sorted({"model"}.union(*rows)))}, **WORKLOADS[recipe]}, "measure": {"warmup_steps": 1, "steps": 2},
                    "grid": {"model": [dict(json.loads(text), name=name) for text, name in models.items()]}, "where": ["tp > 1"],
                    "include": rows}
            (here / "grid.yaml").write_text(json.dumps(grid))
            done = subprocess.run([sweep, "plan", "grid.yaml", "--json"], capture_output=True, text=True, check=False, cwd=here)
            if done.returncode != 0:
                sys.exit(done.stderr)
            for entry in map(json.loads, done.stdout.splitlines()):
                if entry["trial"].get("program") and (entry["admitted"] or entry.get("rule") == "memory"):
                    found.setdefault(entry["id"], entry)
                else:
                    refused[entry.get("rule")] += 1
            if len(found) >= count:
                break
    return list(found.values())[:count], refused


def parsed(recipe, folder, entries):
    """The parser's answers: a line for each entry, or why it cannot be asked."""
    lines = "".join(json.dumps(entry["trial"]) + "\n" for entry in entries)
    done = subprocess.run([sys.executable, PARSERS, recipe, *([folder] if folder else [])], input=lines, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no reason"])[-1]
    return [json.loads(line) for line in done.stdout.splitlines()], ""


def judged(recipe, entries, answers):
    """Prints what was refused, each reason once with its first trial. How many there were."""
    reasons = collections.defaultdict(list)
    for entry, answer in zip(entries, answers, strict=True):
        if "refused" in answer:
            reasons[answer["refused"]].append(entry)
        for name, value in answer.get("read", {}).items():
            if value != entry["trial"].get(name):
                reasons[f"{name} is {entry['trial'].get(name)} in the trial, and was read as {value}"].append(entry)
    for reason, those in sorted(reasons.items(), key=lambda each: -len(each[1])):
        flags = " ".join(word for word in json.loads(those[0]["trial"]["program"])["argv"][14:] if word)
        print(f"  {len(those)} x {reason}\n      e.g. {those[0]['id']}: {flags or those[0]['trial']}")
    return len({entry["id"] for those in reasons.values() for entry in those})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("sources", nargs="*", metavar="RECIPE=FOLDER")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--only", choices=sorted(WORKLOADS))
    given = parser.parse_args()
    sources = dict(each.split("=", 1) for each in given.sources)
    wrong = 0
    for recipe in [given.only] if given.only else sorted(WORKLOADS):
        entries, refused = planned(given.bin_dir.resolve() / "sweep", recipe, given.count, given.seed)
        answers, why = parsed(recipe, sources.get(recipe), entries)
        if answers is None:
            print(f"{recipe}: skipped, its parser cannot be asked: {why}")
            continue
        print(f"{recipe}: {len(entries)} configurations given to its parser; of those drawn, unsupported or pruned: {dict(refused)}")
        if len(entries) < given.count:
            print(f"{recipe}: {given.count} were asked for")
            wrong += 1
        bad = judged(recipe, entries, answers)
        print(f"{recipe}: {len(entries) - bad} understood, {bad} not")
        wrong += bad
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
