"""The grids of gpu_check: which configurations each step runs."""

SMALL = dict(layers=4, hidden_size=1024, heads=16, kv_heads=8, intermediate_size=2816, vocab_size=32000)
LARGE = dict(layers=4, hidden_size=2048, heads=16, kv_heads=8, intermediate_size=5632, vocab_size=32000)
TINY = dict(layers=4, hidden_size=128, heads=4, kv_heads=2, intermediate_size=352, vocab_size=1024)
LLAMA_1B = dict(layers=16, hidden_size=2048, heads=32, kv_heads=8, intermediate_size=8192, vocab_size=128256)
LLAMA_8B = dict(layers=4, hidden_size=4096, heads=32, kv_heads=8, intermediate_size=14336, vocab_size=32768)

# On one rank. What is offloaded is host memory, of a GPU and of its phantom alike.
PRECISIONS = [dict(precision=p) for p in ("fp32", "bf16", "bf16_master", "bf16_mixed", "fp16")]
PATHS = PRECISIONS + [
    dict(precision="bf16", attention="math"), dict(precision="bf16", optimizer="plain"), dict(precision="bf16", optimizer="foreach"),
    dict(precision="bf16", recompute="selective"), dict(precision="bf16", recompute="full"),
    dict(precision="bf16", recompute="full", recompute_every=2), dict(precision="bf16", activation_offload="true"),
    dict(precision="bf16", offload="optimizer"), dict(precision="bf16", offload="parameters"),
    dict(precision="bf16", grad_clip="true"), dict(precision="bf16", experts=True), dict(precision="bf16", experts=True, routing="skewed")]
# Sizes in blocks of 64, which share a scale.
QUANTIZED = "{name: quantized, family: llama, layers: 4, hidden_size: 128, heads: 4, kv_heads: 2, intermediate_size: 384, vocab_size: 1024}"
PARITY = PATHS + [
    dict(precision="fp32", recompute="full"), dict(precision="fp32", experts=True), dict(precision="bf16", offload="disk"),
    dict(precision="bf16_amp"), dict(precision="fp16_amp"), dict(precision="fp8"), dict(precision="fp32", fused_kernels="none"),
    dict(precision="bf16", attention="sdpa"), dict(precision="bf16", attention="cudnn"),
    dict(precision="bf16_mixed", cuda_graph="true"), dict(precision="fp32", experts=True, routing="learned"),
    dict(precision="bf16_mixed", optimizer="adamw_8bit"), dict(precision="bf16_mixed", optimizer="paged_adamw"),
    dict(precision="fp32", optimizer="sgd_momentum"), dict(precision="bf16_mixed", optimizer="adafactor"),
    dict(precision="bf16_mixed", lora_rank=8, quantize_base="nf4", model=QUANTIZED),
    # Families with LayerNorm and GELU, GeGLU and windows, sinks, latent attention and groups of experts, relative positions.
    *[dict(precision="fp32", model=f"tiny-{name}") for name in ("gpt2", "gemma3", "deepseek", "t5")], dict(precision="bf16", model="tiny-gpt-oss")]
PACKED = [dict(precision=precision, packing="true") for precision in ("fp32", "bf16")]
# What the CPU does not run is judged by the GPU's trial that differs in these alone.
NEAREST = {"attention": {"sdpa": "auto", "cudnn": "auto"}, "precision": {"fp8": "bf16_master"}, "cuda_graph": {True: False}}
# Up to and beyond the memory of an 80 GB GPU: 17 sequences nearly fill it, 20 are too many.
LADDER = [dict(precision="bf16", micro_batch_size=m, global_batch_size=m) for m in (2, 8, 16, 17, 20)]
# For two ranks and for any even number of them: the rest of the ranks is data parallel.
STRATEGIES = [dict(), dict(zero=1), dict(zero=2), dict(zero=3), dict(tp=2), dict(tp=2, sp="true"),
              dict(tp=2, sp="true", tp_overlap="true"), dict(pp=2), dict(pp=2, schedule="gpipe"),
              dict(pp=2, schedule="interleaved", vpp=2), dict(cp=2, attention="math", cp_comm_type="all_to_all"),
              dict(cp=2, precision="bf16"), dict(cp=2, precision="bf16", cp_comm_type="all_to_all"), dict(ep=2, experts=True),
              dict(tp=2, one_kv_head=True)]
# Beside every strategy the same model and batch on one rank, in the precisions that the strategies have.
ALONE = [dict(ranks=1), dict(ranks=1, precision="bf16"), dict(ranks=1, experts=True), dict(ranks=1, one_kv_head=True)]

def longer_pipelines(ranks):
    """Only if there are so many ranks: neighbours of a pipeline's rank are two from 3 ranks on, and NCCL has one queue for both."""
    points = [dict(pp=pp, schedule="interleaved", vpp=2, deep=True) for pp in (3, 4) if ranks % pp == 0]
    return [dict(ranks=1, deep=True), *points] if points else []


DEFAULTS = dict(precision="fp32", attention="auto", optimizer="fused", recompute="none", recompute_every=1, zero=0, tp=1, pp=1, cp=1,
                ep=1, vpp=1, offload="none", activation_offload="false", grad_clip="false", sp="false", tp_overlap="false", schedule="1f1b",
                cp_comm_type="ring", routing="balanced", micro_batch_size=1, fused_kernels="all", packing="false", lora_rank=0,
                quantize_base="none", cuda_graph="false")
AXES = [*DEFAULTS, "global_batch_size", "seq_len"]


def model_of(dimensions, experts, one_kv_head, deep):
    family = dict(name="experts", family="mixtral", experts=4, experts_per_token=2) if experts else dict(name="dense", family="llama")
    if one_kv_head:  # less than tp: its pieces are gathered
        family, dimensions = {**family, "name": "one-kv-head"}, {**dimensions, "kv_heads": 1}
    if deep:  # for 3 and 4 stages of two chunks
        family, dimensions = {**family, "name": "deep"}, {**dimensions, "layers": 12}
    return "{" + ", ".join(f"{key}: {value}" for key, value in {**family, **dimensions}.items()) + "}"


def grid_of(name, dimensions, base, points, measure="{warmup_steps: 3, steps: 10}", limits="{retries_crash: 0}"):
    """One trial a point: axes that a point leaves out are those of `base`, else at their defaults."""
    points = [dict(point) for point in points]
    models = [point.pop("model", None) or model_of(dimensions, point.pop("experts", False), point.pop("one_kv_head", False),
                                                   point.pop("deep", False)) for point in points]
    keys = [key for key in AXES if any(key in point for point in points)]
    columns = {key: [point.get(key, base.get(key, DEFAULTS.get(key))) for point in points] for key in keys}
    columns["gpus_per_node"] = [point.pop("ranks", base["gpus_per_node"]) for point in points]
    rest = {key: value for key, value in base.items() if key != "gpus_per_node" and key not in columns}
    lines = [f"name: gpu-check-{name}", "question: Does the training step do on a GPU what it does elsewhere?",
             "base: {" + ", ".join(f"{key}: {value}" for key, value in rest.items()) + "}", "zip:", "  - model:",
             *[f"      - {model}" for model in models],
             *[f"    {key}: [{', '.join(map(str, values))}]" for key, values in columns.items()],
             f"measure: {measure}", f"limits: {limits}"]
    return "\n".join(lines) + "\n"
