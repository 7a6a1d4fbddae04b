#!/usr/bin/env python3
"""Loss and gradient norms of `sweep-rank check` against Hugging Face transformers, on tiny random checkpoints in fp32.

usage: hf_check.py SWEEP_RANK [CASE ...]
On one rank, then as several (LAYOUTS): the same loss and norms of the whole tensors. Loss within 1e-5 (relative); every gradient norm within 1e-4 (relative, with a floor of 1e-7 of the global norm).
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "trainers"))
import lean  # noqa: E402

lean.without("deepspeed", "mlflow")
import torch  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from transformers import (  # noqa: E402
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    BlenderbotConfig,
    DeepseekV2Config,
    DeepseekV3Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    GptOssConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
    T5Config,
)

COMMON = dict(hidden_size=64, intermediate_size=112, num_hidden_layers=3, num_attention_heads=8, vocab_size=156,
              max_position_embeddings=256)
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32, "rope_theta": 500000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.5,
        "original_max_position_embeddings": 32, "rope_theta": 10000.0}
# A first layer without experts; heads of 24 numbers for queries and keys, of which 8 turn, and of 12 for values. The norms of the
# latents do not take rms_norm_eps.
DEEPSEEK = dict(num_key_value_heads=8, kv_lora_rank=20, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12, moe_intermediate_size=24,
                n_routed_experts=8, first_k_dense_replace=1, tie_word_embeddings=False, rms_norm_eps=1e-2)
# Two encoder and three decoder layers. A padding token would leave its row out of the reference's gradient of the embedding.
BLENDERBOT = dict(encoder_layers=2, decoder_layers=3, d_model=64, encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=112,
                  decoder_ffn_dim=112, vocab_size=156, max_position_embeddings=96, scale_embedding=True, dropout=0.0, pad_token_id=None)
T5 = dict(num_layers=2, num_decoder_layers=3, d_model=64, d_kv=12, num_heads=8, d_ff=112, vocab_size=156, dropout_rate=0.0,
          feed_forward_proj="gated-gelu")
CASES = {
    "llama": lambda: LlamaConfig(**COMMON, num_key_value_heads=2, tie_word_embeddings=False),
    "llama3_rope_tied": lambda: LlamaConfig(**COMMON, num_key_value_heads=4, tie_word_embeddings=True, rope_theta=500000.0,
                                            rope_scaling=dict(LLAMA3)),
    "mistral_window": lambda: MistralConfig(**COMMON, num_key_value_heads=2, sliding_window=16, tie_word_embeddings=False),
    "mistral": lambda: MistralConfig(**COMMON, num_key_value_heads=1, sliding_window=None, tie_word_embeddings=False),
    "qwen2": lambda: Qwen2Config(**COMMON, num_key_value_heads=2, tie_word_embeddings=False),
    "qwen2_tied": lambda: Qwen2Config(**COMMON, num_key_value_heads=8, tie_word_embeddings=True),
    "qwen3": lambda: Qwen3Config(**COMMON, num_key_value_heads=2, head_dim=16, tie_word_embeddings=False),
    "qwen3_tied": lambda: Qwen3Config(**COMMON, num_key_value_heads=8, head_dim=8, tie_word_embeddings=True),
    "qwen3_moe": lambda: Qwen3MoeConfig(**COMMON, num_key_value_heads=2, head_dim=16, num_experts=8, num_experts_per_tok=3,
                                        moe_intermediate_size=48, norm_topk_prob=True, tie_word_embeddings=False),
    # A head wider than hidden_size / heads; one key-value head as gemma-2b, as many as heads as gemma-7b. A padding token would
    # leave its row out of the reference's gradient of the embedding.
    "gemma": lambda: GemmaConfig(**COMMON, num_key_value_heads=1, head_dim=16, pad_token_id=None),
    "gemma_7b": lambda: GemmaConfig(**COMMON, num_key_value_heads=8, head_dim=12, pad_token_id=None),
    # A window, none, a window; rotary positions by kind, and scores divided by another root than that of the head's size.
    "gemma3": lambda: Gemma3TextConfig(**COMMON, num_key_value_heads=2, head_dim=16, sliding_window=16, sliding_window_pattern=2,
                                       query_pre_attn_scalar=24, pad_token_id=None, rope_parameters={
                                           "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                                           "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}),
    "gemma3_1b": lambda: Gemma3TextConfig(**COMMON, num_key_value_heads=1, head_dim=12, sliding_window=20, sliding_window_pattern=3,
                                          query_pre_attn_scalar=12, pad_token_id=None),
    # A window, none, a window; YaRN without whole numbers at the ends of the range that it blends.
    "gpt_oss": lambda: GptOssConfig(**COMMON, num_key_value_heads=2, head_dim=16, sliding_window=16, num_local_experts=4,
                                    num_experts_per_tok=2, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                                    rope_parameters={"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                                                     "truncate": False, "original_max_position_embeddings": 64,
                                                     "rope_theta": 150000.0}),
    "deepseek_v2": lambda: DeepseekV2Config(**COMMON, **DEEPSEEK, q_lora_rank=None, n_shared_experts=2, num_experts_per_tok=3),
    "deepseek_v2_queries": lambda: DeepseekV2Config(**COMMON, **DEEPSEEK, q_lora_rank=28, n_shared_experts=1, num_experts_per_tok=2,
                                                    topk_method="group_limited_greedy", n_group=4, topk_group=2,
                                                    routed_scaling_factor=1.5, rope_parameters=dict(YARN)),
    "deepseek_v3": lambda: DeepseekV3Config(**COMMON, **DEEPSEEK, q_lora_rank=28, n_shared_experts=1, num_experts_per_tok=3,
                                            n_group=4, topk_group=2, rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=1.0)),
    "gpt2": lambda: GPT2Config(n_embd=64, n_layer=3, n_head=8, vocab_size=157, n_positions=96, resid_pdrop=0.0, embd_pdrop=0.0,
                               attn_pdrop=0.0),
    "blenderbot": lambda: BlenderbotConfig(**BLENDERBOT),
    "blenderbot_long_source": lambda: BlenderbotConfig(**BLENDERBOT),
    "t5": lambda: T5Config(**T5, tie_word_embeddings=False),
    "t5_tied": lambda: T5Config(**T5),
    "t5_v1_0": lambda: T5Config(**{**T5, "feed_forward_proj": "relu"}),
    "mixtral": lambda: MixtralConfig(**COMMON, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
                                     sliding_window=None, tie_word_embeddings=False),
}

# Tokens of the encoder's sequences, where they are not the decoder's number.
SOURCES = {"blenderbot_long_source": 90, "t5": 150}  # 150: some beyond the furthest distance of T5

# Flags of sweep-rank check, by case.
LAYOUTS = {
    "blenderbot": ["--dp 2 --zero 2", "--dp 2 --zero 3"],
    "blenderbot_long_source": ["--dp 2 --zero 3"],
    "t5": ["--dp 2 --zero 2", "--dp 2 --zero 3"],
    "t5_tied": ["--dp 2 --zero 3"],
    "t5_v1_0": ["--dp 2 --zero 2", "--dp 2 --zero 3"],
    "llama": ["--pp 2", "--dp 2 --zero 3", "--pp 2 --dp 2 --zero 1", "--tp 2", "--tp 2 --sp", "--tp 4", "--tp 4 --sp", "--cp 2", "--cp 2 --cp-comm-type all_to_all", "--dp 2 --tp 2"],
    "mistral": ["--tp 2", "--tp 4 --sp"],
    "qwen2_tied": ["--tp 4 --sp", "--cp 4"],
    "qwen3": ["--pp 2", "--tp 2", "--tp 2 --sp", "--tp 4 --sp", "--cp 2", "--cp 2 --cp-comm-type all_to_all", "--dp 2 --zero 3"],
    "qwen3_tied": ["--tp 4", "--tp 2 --dp 2 --zero 2", "--pp 2 --dp 2 --zero 1"],
    "qwen3_moe": ["--dp 2 --ep 2", "--tp 2 --sp", "--tp 2 --dp 2 --ep 2 --zero 3"],
    "gemma": ["--pp 2", "--tp 2", "--tp 2 --sp", "--dp 2 --zero 3"],
    "gemma_7b": ["--tp 4 --sp", "--cp 2", "--pp 2 --tp 2"],
    "gemma3": ["--pp 2", "--pp 3", "--tp 2", "--tp 2 --sp", "--tp 4 --sp", "--cp 2 --cp-comm-type all_to_all", "--dp 2 --zero 3",
               "--tp 2 --dp 2 --zero 2", "--pp 2 --dp 2 --zero 1"],
    "gpt_oss": ["--tp 2", "--tp 2 --sp", "--tp 4 --sp", "--dp 2 --ep 2", "--tp 2 --dp 2 --ep 2 --zero 3", "--pp 3",
                "--cp 2 --cp-comm-type all_to_all", "--pp 2 --tp 2"],
    "gemma3_1b": ["--tp 2", "--pp 2 --tp 2 --sp"],
    "mixtral": ["--dp 2 --ep 2", "--dp 4 --ep 4 --zero 3", "--tp 2 --sp", "--tp 2 --dp 2 --ep 2", "--pp 2 --cp 2 --ep 2"],
    "deepseek_v2": ["--tp 2", "--tp 2 --sp", "--dp 2 --ep 2", "--pp 2", "--pp 2 --tp 2", "--dp 2 --zero 3", "--cp 2",
                    "--cp 2 --cp-comm-type all_to_all", "--tp 2 --dp 2 --ep 2 --zero 2"],
    "deepseek_v2_queries": ["--tp 4", "--tp 2 --sp", "--dp 2 --zero 1"],
    "deepseek_v3": ["--tp 2", "--tp 4 --sp", "--dp 2 --ep 2 --zero 3", "--pp 3"],
    # 157 tokens: padded to 158 and 160 rows over 2 and 4 ranks, to more with a multiple.
    "gpt2": ["--pp 2", "--tp 2", "--tp 4", "--cp 2", "--tp 2 --cp 2 --sp", "--tp 4 --sp", "--pp 2 --tp 2", "--vocab-multiple 64",
             "--tp 2 --vocab-multiple 64 --dp 2 --zero 3"],
}


def make_checkpoint(config, folder, shards):
    torch.manual_seed(11)
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    model = auto.from_config(config, dtype=torch.float32, attn_implementation="eager")
    own_head = config.model_type == "t5" and not config.scale_decoder_outputs
    if own_head:  # transformers ties them in any case, until a file has both
        model.lm_head.weight = torch.nn.Parameter(model.shared.weight.detach().clone())
    with torch.no_grad():
        for p in model.parameters():  # away from the start: biases and norms that are not 0 and 1
            p.add_(torch.randn_like(p) * 0.05)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.add_(torch.randn_like(buffer) * 0.05)
    model.save_pretrained(folder, safe_serialization=True, max_shard_size="100KB" if shards else "5GB")
    if config.model_type == "gpt_oss":  # its file stacks the experts too, with gate and up in turns
        tensors = {name: tensor for key, value in model.state_dict().items() for name, tensor in of_experts(key, value).items()}
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, os.path.join(folder, "model.safetensors"))
    if own_head:
        tensors = {name: p.detach().contiguous() for name, p in model.named_parameters()}
        save_file(tensors, os.path.join(folder, "model.safetensors"))
        path = os.path.join(folder, "config.json")
        with open(path) as f:
            told = json.load(f) | {"tie_word_embeddings": False}
        with open(path, "w") as f:
            json.dump(told, f)
    return model.train()


def expected(model, tokens, source=0):
    """An encoder reads the sequence's own tokens, from the first on again where its sequences are longer."""
    ids = torch.tensor(tokens)
    inputs = ids[:, :-1]
    given = {"input_ids": inputs}
    if model.config.is_encoder_decoder:
        places = torch.arange(source or inputs.shape[1]) % inputs.shape[1]
        given = {"input_ids": inputs[:, places], "decoder_input_ids": inputs}
    logits = model(**given, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
    loss.backward()
    grads = {}
    for name, p in model.named_parameters():
        if model.config.model_type == "gpt_oss":
            grads.update(of_experts(name, p.grad.double()))
        else:
            grads.update(as_in_the_file(name, p.grad.double(), model.config.model_type == "mixtral"))
    return loss.item(), {name: grad.norm().item() for name, grad in grads.items()}


def of_experts(name, value):
    """gpt-oss stacks the experts of a layer, [in, out] each; the step has a tensor for each matrix and each bias."""
    prefix, _, what = name.partition(".mlp.experts.")
    if not what:
        return {name: value}
    matrix, bias = what.replace("_bias", ""), what.endswith("_bias")
    parts = {}
    for e in range(value.shape[0]):
        one = value[e] if bias else value[e].T
        for part, tensor in {"gate_proj": one[::2], "up_proj": one[1::2]}.items() if matrix == "gate_up_proj" else {"down_proj": one}.items():
            parts[f"{prefix}.mlp.experts.{e}.{part}.{'bias' if bias else 'weight'}"] = tensor
    return parts


def as_in_the_file(name, grad, mixtral):
    """The model stacks all experts of a layer; the file has a tensor for each."""
    layer, (gate, up, down) = name.split(".mlp.")[0] + ".mlp.", ("gate_proj", "up_proj", "down_proj")
    if mixtral:
        layer, (gate, up, down) = name.split(".mlp.")[0] + ".block_sparse_moe.", ("w1", "w3", "w2")
    if name.endswith(".mlp.experts.gate_up_proj"):
        parts = {}
        for e in range(grad.shape[0]):
            parts[f"{layer}experts.{e}.{gate}.weight"], parts[f"{layer}experts.{e}.{up}.weight"] = grad[e].chunk(2)
        return parts
    if name.endswith(".mlp.experts.down_proj"):
        return {f"{layer}experts.{e}.{down}.weight": grad[e] for e in range(grad.shape[0])}
    return {layer + "gate.weight" if name.endswith(".mlp.gate.weight") else name: grad}


def names_in(folder):
    names = set()
    for file in os.listdir(folder):
        if file.endswith(".safetensors"):
            with safe_open(os.path.join(folder, file), "pt") as f:
                names |= set(f.keys())
    return names


def compare(case, binary, shards):
    with tempfile.TemporaryDirectory() as folder:
        model = make_checkpoint(CASES[case](), folder, shards)
        generator = torch.Generator().manual_seed(5)
        tokens = torch.randint(0, model.config.vocab_size, (4, 65), generator=generator).tolist()
        path = os.path.join(folder, "tokens.json")
        with open(path, "w") as f:
            json.dump(tokens, f)
        loss, norms = expected(model, tokens, SOURCES.get(case, 0))
        command = [binary, "check", "--checkpoint", folder, "--tokens", path, "--encoder-seq-len", str(SOURCES.get(case, 0))]
        return compare_layouts(case, command, ["", *LAYOUTS.get(case, [])], loss, norms, names_in(folder))


def compare_layouts(case, command, layouts, loss, norms, names):
    answers = answers_of(command, layouts)
    if isinstance(answers, str):
        return [answers]
    return [sentence for flags, ours in zip(layouts, answers) for sentence in compare_answer(case, flags, ours, loss, norms, names)]


def answers_of(command, layouts):
    """What one process answers of each layout, or the sentence of what went wrong: a start of LibTorch takes longer than most checks."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(flags + "\n" for flags in layouts))
        file.flush()
        run = subprocess.run([*command, "--layouts", file.name], capture_output=True, text=True)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode != 0 or len(answers) != len(layouts):
        return f"sweep-rank check ended with {run.returncode} after {len(answers)} of {layouts}: {run.stderr.strip()}"
    return answers


def compare_answer(case, flags, ours, loss, norms, names):
    wrong = []
    if not math.isclose(ours["loss"], loss, rel_tol=1e-5):
        wrong.append(f"{flags}: loss {ours['loss']} instead of {loss}")
    if not set(ours["grad_norms"]) <= names or len(ours["grad_norms"]) != len(norms):
        wrong.append(f"{flags}: names differ from the file's: {sorted(set(ours['grad_norms']) ^ set(norms))}")
    floor = 1e-7 * math.sqrt(sum(n * n for n in norms.values()))
    worst = 0.0
    for name, norm in norms.items():
        mine = ours["grad_norms"].get(name, float("nan"))
        if not abs(mine - norm) <= max(1e-4 * norm, floor):
            wrong.append(f"{flags}: {name}: {mine} instead of {norm}")
        worst = max(worst, abs(mine - norm) / max(norm, floor))
    print(f"{case} {flags}: loss {ours['loss']:.6f} ({abs(ours['loss'] - loss) / loss:.1e} off), {len(norms)} gradients, "
          f"worst {worst:.1e} off", flush=True)
    return wrong


def main(cases, compared):
    """Compares the cases of the command line, else all; `compared` gives the sentences of what is wrong with one."""
    torch.set_num_threads(1)
    failed = False
    for case in sys.argv[2:] or cases:
        for sentence in compared(case, sys.argv[1]):
            failed = True
            print(f"FAILED {case}: {sentence}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(CASES, lambda case, binary: compare(case, binary, shards=case == "llama")))
