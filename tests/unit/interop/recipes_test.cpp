// The recipes that are built in, as a grid uses them: command lines of a dozen layouts each, what is
// unsupported, and that an axis that the grid does not give is left to the trainer.
#include "orchestrator/interop/recipes.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "orchestrator/grid/grid.h"
#include "orchestrator/grid/workload_text.h"
#include "schema/codec.h"
#include "schema/command_spec.h"

namespace sweep::interop {
namespace {

using ::testing::HasSubstr;

struct Planned {
  CommandSpec command;
  std::string flags;  // after the script
  std::string unsupported;
};

// The one trial of a grid that names a recipe.
Planned planned(const std::string& workload, const std::string& base, const std::string& rest = "") {
  const std::string text = "name: t\nworkload: " + workload + "\nbase: {" + base + "}\n" + rest;
  const auto grid = grid::read_text(text, "g.yaml", {1000, built_in_recipes()});
  EXPECT_TRUE(grid) << (grid ? "" : grid.error().message);
  Planned out;
  if (!grid) return out;
  const auto counts = grid::expand(
      *grid,
      [&](PlanEntry&& entry) {
        out.unsupported = entry.verdict == Outcome::kUnsupported ? entry.reason : "";
        EXPECT_EQ(entry.admitted, out.unsupported.empty()) << entry.reason;
        const auto json = parse_json(entry.trial.program);
        auto spec = json ? from_json<CommandSpec>(*json) : tl::unexpected(json.error());
        EXPECT_TRUE(spec) << entry.trial.program;
        if (spec) out.command = std::move(*spec);
        return true;
      },
      0);
  EXPECT_TRUE(counts);
  const auto& words = out.command.argv;
  auto at = std::ranges::find(words, "sweep_trial");
  for (at = at == words.end() ? words.begin() : at + 1; at != words.end(); ++at)
    out.flags += (out.flags.empty() ? "" : " ") + *at;
  return out;
}

struct Layout {
  const char* base;
  const char* has;          // in the flags, or of the file; empty: nothing
  const char* unsupported;  // part of the reason; empty: it is supported
};

void check(const std::string& workload, std::span<const Layout> layouts, const std::string& rest = "") {
  for (const Layout& layout : layouts) {
    const Planned out = planned(workload, layout.base, rest);
    std::string all = out.flags;
    for (const auto& [path, text] : out.command.files) all += "\n" + text;
    EXPECT_THAT(all, HasSubstr(layout.has)) << layout.base;
    if (*layout.unsupported == '\0')
      EXPECT_EQ(out.unsupported, "") << layout.base;
    else
      EXPECT_THAT(out.unsupported, HasSubstr(layout.unsupported)) << layout.base;
  }
}

TEST(Recipes, EachIsReadAndHasAFirstGridThatIsPlanned) {
  for (const RecipeText& recipe : recipe_texts()) {
    const auto text = grid::read_recipe(recipe.yaml, std::string(recipe.name), built_in_recipes());
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_FALSE(text->trainer.empty() || text->checked.empty()) << recipe.name;
    const auto grid = grid::read_text(text->first_grid, "first.yaml", {1000, built_in_recipes()});
    ASSERT_TRUE(grid) << recipe.name << ": " << grid.error().message;
    i64 admitted = 0;
    ASSERT_TRUE(grid::expand(
        *grid, [&](PlanEntry&& entry) { return admitted += entry.admitted ? 1 : 0, true; }, 0));
    EXPECT_GE(admitted, 4) << recipe.name;
  }
}

TEST(Recipes, WhatTheGridDoesNotGiveIsLeftToTheTrainer) {
  EXPECT_EQ(
      planned("torchtitan", "tp: 1").flags,
      "-m torchtitan.train --training.steps 13 --metrics.log_freq 1 --parallelism.tensor_parallel_degree 1");
  EXPECT_EQ(
      planned("megatron", "tp: 1").flags,
      "pretrain_gpt.py --use-mcore-models --train-iters 13 --log-interval 1 --tensor-model-parallel-size 1");
  EXPECT_EQ(planned("{recipe: torchrun, script: train.py, arguments: [--lr, \"1\"]}", "dp: 2").flags,
            "train.py --lr 1");
}

TEST(Recipes, Torchtitan) {
  const Layout layouts[] = {
      {"dp: 8, zero: 3",
       "--parallelism.data_parallel_replicate_degree 1 --parallelism.data_parallel_shard_degree 8 "
       "--parallelism.fsdp_reshard_after_forward always",
       ""},
      {"dp: 8, zero: 0", "data_parallel_replicate_degree 8 --parallelism.data_parallel_shard_degree 1", ""},
      {"dp: 8, zero: 3, dp_shard: 4",
       "data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 4", ""},
      {"dp: 8, zero: 1", "", "ZeRO stage 1"},
      {"dp: 2, tp: 4, sp: true, zero: 2", "--parallelism.tensor_parallel_degree 4", ""},
      {"dp: 2, tp: 4, sp: false, zero: 2", "", "without sequence parallelism"},
      {"dp: 2, pp: 2, micro_batch_size: 2, grad_accum: 4",
       "--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule 1F1B "
       "--parallelism.pipeline_parallel_microbatch_size 2 --training.local_batch_size 8 "
       "--training.global_batch_size 16",
       ""},
      {"dp: 1, pp: 2, schedule: zero_bubble", "", "zero_bubble"},
      {"dp: 2, cp: 2, zero: 3", "--parallelism.context_parallel_rotate_method alltoall", ""},
      {"dp: 2, cp: 2, zero: 0", "", "context-parallel ranks"},
      {"dp: 1, precision: bf16", "--training.dtype bfloat16 --training.mixed_precision_param bfloat16", ""},
      {"dp: 1, precision: fp16", "", "fp16"},
      {"dp: 1, recompute: selective",
       "--activation_checkpoint.mode selective --activation_checkpoint.selective_ac_option op", ""},
      {"dp: 1, grad_clip: false", "", "no clipping"},
  };
  check("torchtitan", layouts);
}

TEST(Recipes, Megatron) {
  const Layout layouts[] = {
      {"dp: 2, tp: 4", "--tensor-model-parallel-size 4", ""},
      {"dp: 2, tp: 4, sp: true", "--sequence-parallel", ""},
      {"dp: 2, pp: 4, schedule: interleaved, vpp: 2", "--num-virtual-stages-per-pipeline-rank 2", ""},
      {"dp: 2, pp: 4, schedule: gpipe", "", "schedule gpipe"},
      {"dp: 8, zero: 1", "--use-distributed-optimizer", ""},
      {"dp: 2, optimizer: adamw_8bit", "", "optimizer adamw_8bit: it has Adam and SGD"},
      {"dp: 8, zero: 3",
       "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --ckpt-format fsdp_dtensor",
       ""},
      {"dp: 8, zero: 1, dp_shard: 4", "--num-distributed-optimizer-instances 2", ""},
      {"dp: 2, cp: 2, cp_comm_type: all_to_all", "--context-parallel-size 2 --cp-comm-type a2a", ""},
      {"dp: 1, precision: bf16_master", "--bf16 --grad-reduce-in-bf16", ""},
      {"dp: 1, precision: bf16", "", "all in bf16"},
      {"dp: 1, recompute: full, recompute_every: 3",
       "--recompute-granularity full --recompute-method uniform --recompute-num-layers 3", ""},
      {"dp: 2, micro_batch_size: 2, grad_accum: 3", "--micro-batch-size 2 --global-batch-size 12", ""},
      {"dp: 2, offload: parameters", "", "offload parameters"},
  };
  check("megatron", layouts);
  check("megatron",
        std::array{Layout{"dp: 1", "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336", ""},
                   Layout{"pp: 3", "", "32 layers over 3 stages"}},
        "model: llama3-8b\n");
  EXPECT_EQ(planned("megatron", "tp: 2").command.environment.at("CUDA_DEVICE_MAX_CONNECTIONS"), "1");
  EXPECT_TRUE(planned("megatron", "tp: 2, dp: 2, zero: 2").command.environment.empty());
}

TEST(Recipes, DeepSpeed) {
  const Layout layouts[] = {
      {"dp: 2, zero: 1", "\"stage\": 1", ""},
      {"dp: 2, zero: 2, grad_bucket_mb: 1", "\"reduce_bucket_size\": 262144", ""},
      {"dp: 4, zero: 3, dp_shard: 2", "", "hybrid sharding"},
      {"dp: 4, zero: 2, dp_shard: 2", "", "hybrid sharding"},
      {"dp: 2, micro_batch_size: 3, grad_accum: 2", "\"train_batch_size\": 12,\n", ""},
      {"dp: 2, zero: 3, offload: parameters", "\"offload_param\"", ""},
      {"dp: 2, zero: 2, offload: parameters", "", "with ZeRO stage 3 only"},
      {"dp: 2, precision: fp16, zero: 0", "\"initial_scale_power\": 16", ""},
      {"dp: 2, precision: bf16, zero: 2", "\"bf16_optimizer_states\": true", ""},
      {"dp: 2, precision: bf16, zero: 0", "", "all in bf16 without ZeRO"},
      {"tp: 2", "\"autotp_size\": 2", ""},
      {"pp: 2", "", "PipelineModule"},
      {"dp: 2, grad_clip: true", "\"gradient_clipping\": 1.0", ""},
  };
  check("{recipe: deepspeed, script: train.py}", layouts);
}

TEST(Recipes, Nanotron) {
  const Layout layouts[] = {
      {"dp: 2, tp: 2, pp: 2", "  dp: 2\n  tp: 2\n  pp: 2\n  pp_engine: 1f1b\n", ""},
      {"pp: 2, schedule: gpipe", "pp_engine: afab", ""},
      {"pp: 2, schedule: interleaved, vpp: 2", "", "schedule interleaved"},
      {"dp: 2, zero: 1", "zero_stage: 1", ""},
      {"dp: 2, zero: 2", "", "ZeRO stage 2"},
      {"tp: 2, sp: true", "tp_mode: REDUCE_SCATTER", ""},
      {"tp: 2, sp: false", "tp_mode: ALL_REDUCE", ""},
      {"dp: 1, recompute: full", "recompute_layer: true", ""},
      {"dp: 1, recompute: selective", "", "selective recomputation"},
      {"dp: 1, precision: bf16_master, grad_dtype: fp32", "accumulate_grad_in_fp32: true", ""},
      {"dp: 1, precision: bf16_mixed", "", "fp32 weights cast for use"},
      {"dp: 1, precision: bf16_amp", "", "autocast"},
      {"dp: 1, seq_len: 2048, micro_batch_size: 2, grad_accum: 4",
       "tokens:\n  micro_batch_size: 2\n  batch_accumulation_per_replica: 4\n  sequence_length: 2048\n  "
       "train_steps: 13\n",
       ""},
  };
  check("nanotron", layouts);
}

TEST(Recipes, HuggingFaceAndLightning) {
  const Layout options[] = {
      {"dp: 2, hardware: cpu", "--use_cpu True", ""},
      {"dp: 2, micro_batch_size: 3", "--per_device_train_batch_size 3", ""},
      {"dp: 2, grad_accum: 4", "--gradient_accumulation_steps 4", ""},
      {"dp: 2, global_batch_size: 8", "--gradient_accumulation_steps 4", ""},
      {"dp: 2, precision: bf16_mixed", "--bf16 True", ""},
      {"dp: 2, precision: fp16_amp", "--fp16 True", ""},
      {"dp: 2, precision: bf16", "", "the script chooses the type"},
      {"dp: 2, recompute: full", "--gradient_checkpointing True", ""},
      {"dp: 2, recompute: selective", "", "selective recomputation"},
      {"dp: 2, zero: 3", "\"reshard_after_forward\": true", ""},
      {"dp: 2, zero: 2, offload: parameters", "\"reshard_after_forward\": false,\n  \"cpu_offload\": true",
       ""},
      {"dp: 2, zero: 1", "", "ZeRO stage 1"},
      {"tp: 2", "", "split data only"},
      {"dp: 2, grad_clip: false", "--max_grad_norm 0.0", ""},
      {"dp: 2, optimizer: plain", "", "the plain AdamW"},
      {"dp: 2, optimizer: adamw_8bit", "--optim adamw_bnb_8bit", ""},
      {"dp: 2, optimizer: paged_adamw", "--optim paged_adamw_32bit", ""},
      {"dp: 2, optimizer: adafactor", "--optim adafactor", ""},
  };
  check("{recipe: huggingface, script: train.py}", options);
  const Layout lightning[] = {
      {"dp: 2", "--trainer.devices 2 --trainer.accelerator cpu", ""},
      {"dp: 2, zero: 3", "--trainer.strategy fsdp", ""},
      {"dp: 2", "--trainer.strategy ddp", ""},
      {"dp: 2, precision: bf16_mixed", "--trainer.precision bf16-mixed", ""},
      {"dp: 2, precision: bf16_amp", "--trainer.precision bf16-mixed", ""},
      {"dp: 2, precision: fp16_amp", "--trainer.precision 16-mixed", ""},
      {"dp: 2, precision: fp8", "", "precision fp8"},
      {"dp: 2, grad_accum: 4", "--trainer.accumulate_grad_batches 4", ""},
      {"dp: 2, grad_clip: true", "--trainer.gradient_clip_val 1.0", ""},
      {"dp: 2, recompute: full", "", "full recomputation"},
      {"dp: 2, offload: optimizer", "", "offload optimizer"},
      {"pp: 2", "", "a strategy of the script's own"},
  };
  check("{recipe: lightning, script: train.py}", lightning);
}

}  // namespace
}  // namespace sweep::interop
