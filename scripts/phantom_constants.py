"""Constants of phantom GPUs (SWEEP_PHANTOM_PROFILE, docs/phantom.md) from what a trainer profile says of a program's times: the share of the
peak that its products and its attention reach, and its host's time for a launch."""
import json
import pathlib

REPO = pathlib.Path(__file__).resolve().parent.parent
HARDWARE = {each["hardware"]: each for each in json.loads((REPO / "bench_kernels/shape/hardware.json").read_text())}
# Kernels that the built-in step launches for a layer, forward and backward, with fused operators and with PyTorch's (step_launches of playbook-1b).
LAUNCHES = {True: 30, False: 119}


def profile(name):
    """A built-in trainer profile, with what it takes from the one that it extends."""
    own = json.loads((REPO / f"orchestrator/predict/profiles/{name}.json").read_text())
    if "extends" not in own:
        return own
    base = profile(own["extends"])
    return {**base, **own, "time": {**base["time"], **own.get("time", {})}, "facts": {**base["facts"], **own.get("facts", {})}}


def constants(name, hardware, fused):
    """Of phantoms of this hardware that run the step, with fused operators or not, in place of the profile's program."""
    of = profile(name)
    time, facts, gpu = of["time"], of["facts"], HARDWARE[hardware]
    reach = gpu.get("product_reach", 0) / facts["product_reach"] if facts.get("product_reach") and gpu.get("product_reach") else 1
    ampere = gpu["compute_capability"].startswith("8.") and facts.get("attention_ampere")
    products = min(1.0, time["matmul_share"] * reach)
    return {"matmul_efficiency": products, "attention_efficiency": min(1.0, products * (ampere or facts["attention_share"])),
            "launch_host_ns": int(1e9 * time["layer_launch_s"] / LAUNCHES[fused])}
