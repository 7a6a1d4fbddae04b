// What the training step does not build yet. A strategy that gets built deletes its line here, nothing else.
#include <fmt/format.h>

#include "orchestrator/plan/rules.h"

namespace sweep::plan {
namespace {

struct Gap {
  const char* what;
  bool (*asked)(const Trial&);
};

constexpr Gap kGaps[] = {
    {"tensor parallelism (tp > 1)", [](const Trial& t) { return t.tp > 1; }},
    {"pipeline parallelism (pp > 1)", [](const Trial& t) { return t.pp > 1; }},
    {"context parallelism (cp > 1)", [](const Trial& t) { return t.cp > 1; }},
    {"expert parallelism (ep > 1)", [](const Trial& t) { return t.ep > 1; }},
    {"ZeRO sharding (zero > 0)", [](const Trial& t) { return t.zero > 0; }},
    {"recomputation (recompute other than none)", [](const Trial& t) { return t.recompute != "none"; }},
    {"offloading (offload other than none)", [](const Trial& t) { return t.offload != "none"; }},
    {"packed sequences (packing)", [](const Trial& t) { return t.packing; }},
    {"hybrid sharding (dp_shard)", [](const Trial& t) { return t.dp_shard.has_value(); }},
    {"a gradient type of its own (grad_dtype)", [](const Trial& t) { return t.grad_dtype != "auto"; }},
    {"gradient clipping (clip)", [](const Trial& t) { return t.clip; }},
    {"offloaded activations (activation_offload)", [](const Trial& t) { return t.activation_offload; }},
    {"a precision other than fp32 and bf16",
     [](const Trial& t) { return t.precision != "fp32" && t.precision != "bf16"; }},
    {"a workload other than step", [](const Trial& t) { return t.workload != "step"; }},
};

}  // namespace

std::optional<Objection> not_built_yet(const Trial& t) {
  std::string gaps;
  for (const Gap& gap : kGaps)
    if (gap.asked(t)) gaps += (gaps.empty() ? "" : ", ") + std::string(gap.what);
  if (gaps.empty()) return {};
  return Objection{"unsupported", fmt::format("the training step does not build {} yet", gaps),
                   Outcome::kUnsupported};
}

}  // namespace sweep::plan
