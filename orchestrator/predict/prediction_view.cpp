#include "orchestrator/predict/prediction_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace sweep::predict {
namespace {

using Predicted = const TrialPrediction&;
using Profile = const TrainerProfile&;

enum class Kind { kBytes, kLimit, kTime, kUncertainty };
struct Figure {
  const char* name;
  Kind kind;
  double (*of)(Predicted, Profile);
};
const Figure kFigures[] = {
    {"predicted_bytes", Kind::kBytes,
     [](Predicted t, Profile p) { return t.memory.reserved / p.facts.reported_unit; }},
    {"peak_bytes", Kind::kBytes, [](Predicted t, Profile) { return t.memory.wanted; }},
    {"needed_bytes", Kind::kBytes, [](Predicted t, Profile) { return t.memory.need; }},
    {"limit_bytes", Kind::kLimit, [](Predicted t, Profile) { return t.memory.limit; }},
    {"predicted_step_s", Kind::kTime, [](Predicted t, Profile) { return t.time.step_s; }},
    {"predicted_tokens_per_s_gpu", Kind::kTime, [](Predicted t, Profile) { return t.time.tokens_per_s_gpu; }},
    {"weights_bytes", Kind::kBytes, [](Predicted t, Profile) { return t.memory.parts.weights; }},
    {"gradients_bytes", Kind::kBytes, [](Predicted t, Profile) { return t.memory.parts.gradients; }},
    {"optimizer_bytes", Kind::kBytes, [](Predicted t, Profile) { return t.memory.parts.optimizer; }},
    {"activations_bytes", Kind::kBytes, [](Predicted t, Profile) { return t.memory.parts.activations; }},
    {"logits_bytes", Kind::kBytes, [](Predicted t, Profile) { return t.memory.parts.logits; }},
    {"buffers_bytes", Kind::kBytes,
     [](Predicted t, Profile) { return t.memory.parts.gather_buffers + t.memory.parts.gradient_copies; }},
    {"allocator_bytes", Kind::kBytes,
     [](Predicted t, Profile) {
       return t.memory.parts.base + t.memory.parts.fragmentation + t.memory.parts.held;
     }},
    {"compute_s", Kind::kTime, [](Predicted t, Profile) { return t.time.compute_s; }},
    {"pipeline_s", Kind::kTime, [](Predicted t, Profile) { return t.time.pipeline_s; }},
    {"slow_messages_s", Kind::kTime, [](Predicted t, Profile) { return t.time.slow_messages_s; }},
    {"retry_s", Kind::kTime, [](Predicted t, Profile) { return t.time.retry_s; }},
    {"data_parallel_s", Kind::kTime, [](Predicted t, Profile) { return t.time.data_parallel_s; }},
    {"optimizer_s", Kind::kTime, [](Predicted t, Profile) { return t.time.optimizer_s; }},
    {"uncertainty_bytes", Kind::kUncertainty,
     [](Predicted t, Profile p) { return p.error.*p.memory_model->spread(t.layout); }},
    {"uncertainty_time_factor", Kind::kUncertainty,
     [](Predicted t, Profile p) { return std::exp(p.error.*p.time_model->spread(t.layout)); }}};

// A trial that is refused may have no memory and no time; and the limit of some hardware is not known.
bool is_known(Kind kind, Predicted t) {
  switch (kind) {
    case Kind::kBytes:
      return t.memory.wanted > 0;
    case Kind::kLimit:
      return t.memory.limit > 0;
    case Kind::kTime:
      return t.time.step_s > 0;
    case Kind::kUncertainty:
      return true;
  }
  return true;
}

// Bytes that a rank would need less by options of fp8 that no axis says.
double perhaps_less(const Layout& l, const ProfileFacts& f) {
  if (!l.types.fp8) return 0;
  double parameters = 0;
  for (const StageWork& s : l.stages) parameters = std::max(parameters, s.parameters);
  return parameters *
         (f.fp8_weights_less + f.fp8_masters_less / (l.ranks.zero >= 1 ? l.ranks.dp * l.ranks.cp : 1));
}

}  // namespace

namespace {

Verdict verdict_on_memory(const TrialPrediction& predicted, const TrainerProfile& p) {
  if (const auto& refused = predicted.refusal) return {false, true, refused->rule + ": " + refused->reason};
  const auto& m = predicted.memory;
  if (m.limit <= 0) return {true, false, "the memory of the hardware is not known"};
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  Verdict out;
  out.fits = m.fits();
  const double least = m.need - perhaps_less(predicted.layout, p.facts);
  out.sure = std::abs(m.need / m.limit - 1) > p.facts.unsure_band &&
             (out.fits || least / m.limit - 1 > p.facts.unsure_band);
  if (const auto& seen = predicted.layout.seen; out.fits && seen.fails > 0) {
    out.sure = false;
    out.reason = fmt::format("seen to fail on {} ({:.0f} %): {}", p.hardware, 100 * seen.fails, seen.failure);
    return out;
  }
  if (!out.fits || !out.sure)
    out.reason = fmt::format("memory: stage {} needs {:.1f} GiB, the limit is {:.1f} GiB{}", m.fullest_stage,
                             m.need / kGiB, m.limit / kGiB,
                             out.sure ? "" : "; within what the prediction does not know");
  return out;
}

}  // namespace

Verdict verdict_on(const TrialPrediction& predicted, const TrainerProfile& p) {
  Verdict out = verdict_on_memory(predicted, p);
  if (!predicted.depends.empty()) {
    out.sure = false;
    out.reason += (out.reason.empty() ? "" : "; ") + ("not with " + predicted.depends);
  }
  if (!predicted.no_time.empty()) out.reason += (out.reason.empty() ? "" : "; ") + predicted.no_time;
  return out;
}

std::vector<std::string> prediction_columns() {
  std::vector<std::string> out = {"fits", "sure", "reason"};
  for (const Figure& figure : kFigures) out.emplace_back(figure.name);
  return out;
}

void append_prediction(std::string& line, const TrialPrediction& predicted, const TrainerProfile& p) {
  const Verdict verdict = verdict_on(predicted, p);
  auto out = std::back_inserter(line);
  fmt::format_to(out, "{},{},{}", verdict.fits, verdict.sure ? "yes" : "no", csv_field(verdict.reason));
  for (const Figure& figure : kFigures) {
    const double value = figure.of(predicted, p);
    if (!is_known(figure.kind, predicted))
      line += ',';
    else if (figure.kind == Kind::kTime)
      fmt::format_to(out, ",{:.6g}", value);
    else
      fmt::format_to(out, ",{:.{}f}", value, figure.kind == Kind::kUncertainty ? 3 : 0);
  }
}

void add_prediction(nlohmann::json& object, const TrialPrediction& predicted, const TrainerProfile& p) {
  const Verdict verdict = verdict_on(predicted, p);
  object["fits"] = verdict.fits, object["sure"] = verdict.sure;
  object["reason"] = verdict.reason.empty() ? nlohmann::json(nullptr) : nlohmann::json(verdict.reason);
  for (const Figure& figure : kFigures) {
    const double value = figure.of(predicted, p);
    if (!is_known(figure.kind, predicted))
      object[figure.name] = nullptr;
    else if (figure.kind == Kind::kBytes || figure.kind == Kind::kLimit)
      object[figure.name] = std::llround(value);
    else
      object[figure.name] = value;
  }
}

}  // namespace sweep::predict
