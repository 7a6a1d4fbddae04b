#include "orchestrator/driver/gpu_hours.h"

#include <fmt/format.h>

#include "orchestrator/run/recovery.h"

namespace sweep::driver {

std::optional<std::string> why_confirm(const search::Most& most, double limit, std::optional<double> bound) {
  if (limit <= 0 || most.cost <= limit || (bound && *bound <= limit)) return std::nullopt;
  return fmt::format(
      "{} are predicted to take {:.3g} GPU-hours, and more than {:.3g} need confirmation "
      "(confirm_gpu_hours)",
      most.trials == 1 ? "1 trial" : fmt::format("{} trials", most.trials), most.cost, limit);
}

Expected<answers::GpuHours> held_gpu_hours(store::Store& store, const store::SweepRow& sweep,
                                           std::optional<double> limit) {
  constexpr double kSecondsInHour = 3600;
  SWEEP_GET(const auto held, run::gpu_seconds_held(store, sweep.id));
  return answers::GpuHours{(held.ended + held.open) / kSecondsInHour, limit};
}

std::string past_limit(run::Limit limit, store::Store& store, const store::SweepRow& sweep,
                       const std::function<std::string(const std::string&)>& words_of) {
  const std::string resume = "sweep resume " + words_of(sweep.name);
  const double held = held_gpu_hours(store, sweep, std::nullopt).value_or(answers::GpuHours()).held;
  const SweepOptions& kept = sweep.options;
  if (limit == run::Limit::kSite)
    return fmt::format("raise `limits: {{gpu_hours: N}}` of the site profile above {:.3g}, then `{}`", held,
                       resume);
  if (limit == run::Limit::kUsd && kept.usd && kept.gpu_hours)
    return fmt::format("`sweep run {} --usd U`, with U above {:.3g}",
                       words_of(sweep.grid_path.empty() ? "GRID" : sweep.grid_path),
                       *kept.usd * held / *kept.gpu_hours);
  return fmt::format("`{} --gpu-hours H`, with H above {:.3g}", resume, held);
}

}  // namespace sweep::driver
