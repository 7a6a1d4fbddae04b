// What the training step does not build yet. A strategy that gets built deletes its line here, nothing else.
#include <fmt/format.h>

#include "bench_kernels/shape/model_states.h"
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
    {"recomputation (recompute other than none)", [](const Trial& t) { return t.recompute != "none"; }},
    {"packed sequences (packing)", [](const Trial& t) { return t.packing; }},
    {"offloaded activations (activation_offload)", [](const Trial& t) { return t.activation_offload; }},
    {"a workload other than step", [](const Trial& t) { return t.workload != "step"; }},
};

}  // namespace

std::optional<Objection> not_built_yet(const Trial& t) {
  std::string gaps;
  for (const Gap& gap : kGaps)
    if (gap.asked(t)) gaps += (gaps.empty() ? "" : ", ") + std::string(gap.what);
  if (gaps.empty()) {
    if (auto reason = shape::states_unsupported(t))
      return Objection{"unsupported", *reason, Outcome::kUnsupported};
    return {};
  }
  return Objection{"unsupported", fmt::format("the training step does not build {} yet", gaps),
                   Outcome::kUnsupported};
}

}  // namespace sweep::plan
