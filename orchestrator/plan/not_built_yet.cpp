// Refuses what the training step does not build yet. Who builds it deletes the line here.
#include <fmt/format.h>

#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/around_step.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/shape/encoder.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/shape/splits.h"
#include "orchestrator/plan/rules.h"

namespace sweep::plan {
namespace {

struct Gap {
  const char* what;
  bool (*asked)(const Trial&);
};

constexpr Gap kGaps[] = {
    {"a workload other than step",
     [](const Trial& t) { return t.workload != Workload::kStep && t.workload != Workload::kCommand; }},
};

}  // namespace

std::optional<Objection> not_built_yet(const Trial& t) {
  if (t.workload == Workload::kCommand) return {};  // another program's step
  std::string gaps;
  for (const Gap& gap : kGaps)
    if (gap.asked(t)) gaps += (gaps.empty() ? "" : ", ") + std::string(gap.what);
  if (gaps.empty()) {
    for (const auto& reason :
         {shape::states_unsupported(t), shape::split_not_built(t), shape::adapters_objection(t),
          shape::quantized_base_objection(t), shape::documents_objection(t), shape::around_objection(t),
          shape::encoder_objection(t)})
      if (reason) return Objection{{"unsupported", *reason}, Outcome::kUnsupported};
    return {};
  }
  return Objection{{"unsupported", fmt::format("the training step does not build {} yet", gaps)},
                   Outcome::kUnsupported};
}

}  // namespace sweep::plan
