// The trainer profiles beside nanotron's: facts read from programs or measured, nothing fitted to rates.
#include <algorithm>
#include <array>

#include "orchestrator/predict/trainer_profile.h"

namespace sweep::predict {
namespace {

// Of a program whose times are not measured: hardware as nanotron's, without that cluster's effects.
TrainerProfile plain_times(const char* name, const char* source) {
  TrainerProfile p = nanotron_profile();
  p.name = name, p.source = source;
  ProfileFacts& f = p.facts;
  f.joint_qkv = f.splits_by_cost = f.reports_first_stage = f.warmup_needs_micros = f.tied_zero0_hangs = false;
  f.reported_unit = 1;
  TimeParameters& t = p.time;
  t.layer_launch_s = 1.2e-3, t.stage_launch_s = 1e-3, t.hop_launch_s = 0;
  t.near_share = t.far_share = 1;
  t.slow_message_s = 0;
  t.data_parallel_share = t.optimizer_share = 1.3;
  p.error.time = p.error.time_far = p.error.time_many = 1.1;  // a factor of three: nothing was measured
  return p;
}

// What PyTorch's tracker shows of one layer and of the loss (scripts/fsdp2_memory.py): norms keep input and
// result, so 4 tensors of hidden_size beside those of attention, and 4 of intermediate_size; a logit takes
// 12 bytes at the start of the backward, in any precision: log_softmax and two gradients in fp32.
TrainerProfile eager(const char* name, const char* source) {
  TrainerProfile p = plain_times(name, source);
  ProfileFacts& f = p.facts;
  f.eager = f.whole_logits = true;
  f.hidden_saved = 8, f.intermediate_saved = 4, f.logit_bytes = 12;
  f.update_bytes = 4;  // AdamW's default is foreach: a root for each of its fp32 second moments
  f.need_share = f.reserved_share = 0.95;
  p.memory = {};
  p.memory.base_gib = p.memory.gradient_copies = p.memory.fragmentation = p.memory.gather_buffers =
      p.memory.held_most = 0;
  p.error.memory = 0.05, p.error.memory_tensor = 0.1;  // tensor parallelism: one row to compare with
  return p;
}

TrainerProfile step() {
  TrainerProfile p = plain_times("sweep", "the step's own allocations; times chosen, not fitted");
  p.facts.follows_step = true;
  p.facts.need_share = p.facts.reserved_share = 0.95;
  p.error.memory = p.error.memory_tensor = 0.03;
  return p;
}

TrainerProfile transformers() {
  TrainerProfile p = eager("transformers", "PyTorch's FSDP2 tracker, transformers 5.23's Llama, torch 2.11");
  p.facts.hidden_saved = 12;  // each norm keeps its input in fp32 and its result twice
  return p;
}

// minGPT of 2022 under Lightning's FSDP, mixed precision, on V100: its GELU is written out and keeps six wide
// tensors; scores are kept as the fp32 softmax, its dropout and 16-bit copies, 11 bytes; cross entropy from
// 16-bit logits; PyTorch before 2.0 zeroed gradients and kept them, and its AdamW was not foreach.
TrainerProfile lightning() {
  TrainerProfile p = eager("lightning", "Lightning's tables of GPT-2 on four V100, 2022");
  ProfileFacts& f = p.facts;
  f.hidden_saved = 13, f.intermediate_saved = 6, f.score_bytes = 11, f.logit_bytes = 6;
  f.keeps_gradients = true, f.update_bytes = 0;
  f.reported_unit = 1.048576;  // nvidia-smi prints MiB, the tables call them MB
  f.need_share = 1;
  f.reserved_share = 0.93;   // the largest figure of the tables
  p.memory.base_gib = 1.46;  // nvidia-smi counts the context, NCCL and cuBLAS too
  p.error.memory = p.error.memory_tensor = 0.1;
  return p;
}

}  // namespace

const TrainerProfile& step_profile() {
  static const TrainerProfile profile = step();
  return profile;
}
const TrainerProfile& fsdp2_profile() {
  static const TrainerProfile profile =
      eager("fsdp2", "PyTorch's FSDP2 tracker, a Llama with fused norms, torch 2.11");
  return profile;
}
const TrainerProfile& transformers_profile() {
  static const TrainerProfile profile = transformers();
  return profile;
}
const TrainerProfile& lightning_profile() {
  static const TrainerProfile profile = lightning();
  return profile;
}

namespace {
std::array<const TrainerProfile*, 5> all_built_in() {
  return {&nanotron_profile(), &step_profile(), &fsdp2_profile(), &transformers_profile(),
          &lightning_profile()};
}
}  // namespace

const TrainerProfile* built_in_profile(std::string_view name) {
  const auto all = all_built_in();
  const auto found = std::ranges::find(all, name, [](const TrainerProfile* p) { return p->name; });
  return found == all.end() ? nullptr : *found;
}

std::string built_in_profiles() {
  std::string out;
  for (const TrainerProfile* p : all_built_in()) out += (out.empty() ? "" : ", ") + p->name;
  return out;
}

}  // namespace sweep::predict
