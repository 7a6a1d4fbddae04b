#include "orchestrator/cli/gpu_hours.h"

#include <fmt/format.h>

#include "orchestrator/run/recovery.h"

namespace sweep::cli {

Expected<void> confirmed(Io& io, const search::Most& most, const driver::LaunchChoice& choice,
                         std::optional<double> bound, bool yes) {
  const double limit = choice.config->confirm_gpu_hours();
  const double predicted = most.cost;
  if (yes || limit <= 0 || predicted <= limit || (bound && *bound <= limit)) return {};
  const auto why = fmt::format(
      "{} are predicted to take {:.3g} GPU-hours, and more than {:.3g} need confirmation "
      "(confirm_gpu_hours)",
      most.trials == 1 ? "1 trial" : fmt::format("{} trials", most.trials), predicted, limit);
  if (io.in == nullptr)
    return fail(fmt::format("{}; say --yes, or end it at {:.3g} with --gpu-hours", why, limit));
  return goes_on(io, why) ? Expected<void>() : fail("nothing was started");
}

Expected<answers::GpuHours> held_hours(store::Store& store, const store::SweepRow& sweep,
                                       std::optional<double> limit) {
  constexpr double kSecondsInHour = 3600;
  const auto held = run::gpu_seconds_held(store, sweep.id);
  if (!held) return tl::unexpected(held.error());
  return answers::GpuHours{(held->ended + held->open) / kSecondsInHour, limit};
}

std::string held_hours_in(const std::string& db, const std::string& sweep, std::optional<double> limit) {
  std::error_code ec;
  if (!std::filesystem::exists(db, ec)) return {};
  const auto opened = open_sweep({db, sweep}, store::Mode::kReadOnly);
  const auto held = opened ? held_hours(*opened->store, opened->sweep, limit).value_or(answers::GpuHours())
                           : answers::GpuHours();
  return answers::gpu_hours_text(held);
}

std::string past_limit(run::Limit limit, store::Store& store, const store::SweepRow& sweep,
                       const std::function<std::string(const std::string&)>& words_of) {
  const std::string resume = "sweep resume " + words_of(sweep.name);
  const double held = held_hours(store, sweep, std::nullopt).value_or(answers::GpuHours()).held;
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

}  // namespace sweep::cli
