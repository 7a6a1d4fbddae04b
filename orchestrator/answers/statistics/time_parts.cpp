#include "orchestrator/answers/statistics/time_parts.h"

#include <algorithm>
#include <cmath>

namespace sweep::answers {

std::optional<std::vector<double>> time_parts(const Metrics& m, const Trial& trial) {
  if (!m.step_ms || !std::isfinite(*m.step_ms) || !m.forward_ms || !m.backward_ms) return std::nullopt;
  const double optimizer = m.optimizer_ms.value_or(0);
  // Waits between stages, outside backward: a share of the step without the update and the wait for data.
  const double bubble = m.bubble.value_or(0) * (*m.step_ms - optimizer - m.data_ms.value_or(0));
  const double waited =
      std::clamp(m.exposed_comm_ms.value_or(0) - bubble, 0.0, *m.backward_ms + *m.forward_ms + optimizer);
  const bool gathers = trial.zero >= 3 || trial.offload == Offload::kParameters;
  const double passes = *m.forward_ms + *m.backward_ms;
  const double in_backward = gathers && passes > 0 ? std::min(waited, passes) * *m.backward_ms / passes
                                                   : std::min(waited, *m.backward_ms);
  const double in_forward = std::min(waited - in_backward, *m.forward_ms);
  const double in_update = std::max(0.0, waited - in_backward - in_forward);
  const double other = std::max(0.0, *m.step_ms - *m.forward_ms - *m.backward_ms - optimizer - bubble);
  return std::vector<double>{
      *m.forward_ms - in_forward, *m.backward_ms - in_backward, waited, optimizer - in_update, bubble, other};
}

Metrics rank_times(const RankRecord& record, bool pipeline) {
  Metrics out;
  i64 steps = 0, step = 0, forward = 0, backward = 0, optimizer = 0, waited = 0, data = 0;
  bool separable = true;
  for (const StepSample& s : record.samples) {
    if (s.warmup || s.step_ns <= 0) continue;
    ++steps, step += s.step_ns, forward += s.forward_ns, backward += s.backward_ns,
        optimizer += s.optimizer_ns;
    waited += s.exposed_comm_ns.value_or(0), separable = separable && s.exposed_comm_ns;
    data += s.data_ns.value_or(0);
  }
  if (steps == 0) return out;
  const auto mean = [&](i64 ns) { return static_cast<double>(ns) / 1e6 / static_cast<double>(steps); };
  out.timed_steps = steps, out.step_ms = mean(step);
  if (forward > 0) out.forward_ms = mean(forward);
  if (backward > 0) out.backward_ms = mean(backward);
  if (optimizer > 0) out.optimizer_ms = mean(optimizer);
  if (data > 0) out.data_ms = mean(data);
  if (separable) out.exposed_comm_ms = mean(waited);
  const i64 passes = step - optimizer - data;
  if (pipeline && out.forward_ms && passes > 0)
    out.bubble =
        static_cast<double>(std::max<i64>(0, passes - forward - backward)) / static_cast<double>(passes);
  return out;
}

}  // namespace sweep::answers
