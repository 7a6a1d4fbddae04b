#!/usr/bin/env python3
"""predict_test.py SWEEP SOURCE: `sweep predict` on the shipped measurements: rows come back with predictions, what ran is not
refused, order and memory are near what was measured; a profile is fitted, saved and used; bad files end with 2 and their place."""
import csv
import io
import os
import pathlib
import subprocess
import sys
import tempfile

SWEEP, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(SOURCE / "scripts"))
from predict_accuracy import spearman  # noqa: E402

DATA = SOURCE / "sweeps/data/playbook_h100_1B_8B.csv"


def predict(folder, *words, code=0):
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config")}
    done = subprocess.run([SWEEP, "predict", *map(str, words)], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == code, f"predict {words}: exit {done.returncode}, not {code}\n{done.stderr}"
    return done


def rows(done):
    return list(csv.DictReader(io.StringIO(done.stdout)))


def check_accuracy(table, caught=0.83):
    ran = [r for r in table if r["status"] == "ok"]
    failed = [r for r in table if r["status"] == "failed"]
    assert sum(r["fits"] == "false" for r in ran) <= 0.005 * len(ran)
    assert sum(r["fits"] == "false" for r in failed) >= caught * len(failed)
    assert all(r["reason"] for r in table if r["fits"] == "false")
    # What the cluster showed without a known cause (37 of 39 such rows failed) refuses nothing, and is not sure.
    seen = [r for r in table if "seen to fail" in r["reason"]]
    assert len(seen) > 20 and all((r["fits"], r["sure"]) == ("true", "no") for r in seen), len(seen)
    errors = [abs(float(r["predicted_bytes"]) / 1e9 / float(r["mem_gb"]) - 1) for r in ran]
    assert sum(errors) / len(errors) < 0.066, sum(errors) / len(errors)
    for cell in {(r["model"], r["nodes"]) for r in ran}:
        inside = [r for r in ran if (r["model"], r["nodes"]) == cell]
        order = spearman([float(r["predicted_tokens_per_s_gpu"]) for r in inside], [float(r["tok_s_gpu"]) for r in inside])
        assert order > 0.85, (cell, order)


def check_bands(table):
    """Nine of ten rows and more that the fit has seen lie within what is stated; the band says something."""
    ran = [r for r in table if r["status"] == "ok"]
    near = [abs(float(r["predicted_bytes"]) / 1e9 / float(r["mem_gb"]) - 1) <= float(r["uncertainty_bytes"]) for r in ran]
    assert 0.88 <= sum(near) / len(near) <= 0.95, sum(near) / len(near)
    factors = [(float(r["predicted_tokens_per_s_gpu"]) / float(r["tok_s_gpu"]), float(r["uncertainty_time_factor"])) for r in ran]
    near = [1 / factor <= off <= factor for off, factor in factors]
    assert 0.88 <= sum(near) / len(near) <= 0.95, sum(near) / len(near)


def check_built_in(folder):
    """Another trainer's memory: PyTorch's FSDP2 tracker says 41.5 GB for 8B, 8 ranks, bf16_mixed, one sequence of 4096."""
    path = folder / "eager.csv"
    path.write_text("model,gpus,zero,precision,mbs,gas\nllama3-8b,8,3,bf16_mixed,1,1\n", encoding="utf-8")
    peaks = {}
    for profile in ("fsdp2", "transformers", "sweep"):
        peaks[profile] = float(rows(predict(folder, "--configs", path, "--profile", profile))[0]["peak_bytes"]) / 1e9
    assert abs(peaks["fsdp2"] / 41.5 - 1) < 0.05 and peaks["transformers"] > 1.08 * peaks["fsdp2"] and peaks["sweep"] < peaks["fsdp2"], peaks
    path.write_text("model,gpus,pp,gas\nllama3-8b,64,64,64\n", encoding="utf-8")
    refused = rows(predict(folder, "--configs", path, "--profile", "sweep"))[0]
    assert refused["fits"] == "false" and refused["reason"], refused


def check_choice(folder):
    """The profile follows the trainer and the hardware; a foreign one warns; a fit needs times alone."""
    path = folder / "choice.csv"
    head = "trainer,family,layers,hidden_size,heads,vocab_size,gpus,tp,pp,mbs,gas,seq_len,precision,recompute,step_ms\n"
    steps = [(1, 1, 1, 93), (1, 1, 2, 103), (2, 1, 1, 92), (2, 2, 2, 240), (1, 2, 4, 180), (2, 1, 4, 95)]
    path.write_text(head + "".join(f"megatron,gpt2,24,1024,16,51200,4,{tp},{pp},{mbs},2,1024,fp16,full,{ms}\n" for tp, pp, mbs, ms in steps),
                    encoding="utf-8")
    own = predict(folder, "--configs", path, "--hardware", "a100-80gb")
    assert "profile: megatron" in own.stderr and "warning" not in own.stderr, own.stderr
    assert all(r["fits"] == "true" for r in rows(own)), "fewer micro-batches than stages run here"
    assert "warning" in predict(folder, "--configs", path, "--hardware", "h100-sxm-80gb").stderr
    foreign = predict(folder, "--configs", path, "--hardware", "a100-80gb", "--profile", "nanotron")
    assert "not of the trainer megatron" in foreign.stderr and "is of h100-sxm-80gb" in foreign.stderr, foreign.stderr
    predict(folder, "--configs", path, "--trainer", "absent", code=2)
    fit = predict(folder, "--fit", path, "--configs", path, "--hardware", "a100-80gb")
    assert "6 rows state a time, 0 state memory" in fit.stderr, fit.stderr


def check_parts(table):
    for r in table:
        live = sum(float(r[k]) for k in ("weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes", "logits_bytes"))
        assert live <= float(r["peak_bytes"]) * 1.001, r
        parts = ("compute_s", "pipeline_s", "slow_messages_s", "retry_s", "data_parallel_s", "optimizer_s")
        assert abs(sum(float(r[k]) for k in parts) - float(r["predicted_step_s"])) <= 1e-4 * float(r["predicted_step_s"])


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        told = predict(folder, "--configs", DATA, "--trainer", "nanotron")
        assert "profile: nanotron" in told.stderr and "warning" not in told.stderr, told.stderr
        table = rows(told)
        with open(DATA, newline="", encoding="utf-8") as file:
            given = list(csv.DictReader(file))
        assert [{k: r[k] for k in given[0]} for r in table] == given, "the rows come back as they are"
        check_accuracy(table)
        check_parts(table)
        check_bands(table)
        check_built_in(folder)

        saved = predict(folder, "--fit", DATA, "--trainer", "nanotron", "--save", "mine")
        assert "left out" in saved.stderr, saved.stderr
        assert (folder / "config/sweep/profiles/mine.json").exists(), saved.stderr
        check_accuracy(rows(predict(folder, "--configs", DATA, "--profile", "mine")))
        predict(folder, "--configs", DATA, "--profile", "none", code=2)
        predict(folder, "--fit", DATA, "--trainer", "nanotron", "--save", "nanotron", code=2)
        predict(folder, code=2)
        predict(folder, "--configs", DATA, "--hardware", "h1000", code=2)

        check_choice(folder)

        # Another model, by its dimensions: the larger it is, the fewer layouts hold it.
        other = folder / "other.csv"
        head = "layers,hidden_size,heads,intermediate_size,vocab_size,tie_embeddings,nodes,tp,pp,mbs,gas,zero\n"
        other.write_text(head + "30,576,9,1536,49152,true,1,1,1,8,4,1\n80,8192,64,28672,131072,false,8,8,8,1,64,1\n"
                                "80,8192,64,28672,131072,false,1,8,1,1,64,0\n", encoding="utf-8")
        small, large, never = rows(predict(folder, "--configs", other, "--profile", "nanotron"))
        assert (small["fits"], large["fits"], never["fits"]) == ("true", "true", "false"), (small, large, never)
        assert float(small["predicted_tokens_per_s_gpu"]) > 20 * float(large["predicted_tokens_per_s_gpu"])

        bad = folder / "bad.csv"
        bad.write_text("model,nodes,tp\n1B,1,8\n1B,1,many\n", encoding="utf-8")
        told = predict(folder, "--configs", bad, code=2)
        assert f"{bad}:3" in told.stderr and "'tp'" in told.stderr and not told.stdout, told.stderr
        bad.write_text("model,nodes,fits\n1B,1,8\n", encoding="utf-8")
        assert "'fits'" in predict(folder, "--configs", bad, code=2).stderr
    print("predict: ok")


main()
