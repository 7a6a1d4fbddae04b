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

}  // namespace sweep::cli
