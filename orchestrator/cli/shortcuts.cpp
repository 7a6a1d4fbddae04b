#include "orchestrator/cli/shortcuts.h"

#include <fmt/format.h>

#include "orchestrator/report/format.h"
#include "schema/audit.h"

namespace sweep::cli {
namespace {

std::string trials(i64 count) {
  return fmt::format("{} {}", count, count == 1 ? "trial" : "trials");
}

// A rule on memory is wrong for a trial that fits, the others for one that is faster than the best.
std::string audited(const store::Shortcuts::Audited& of) {
  const bool fits = is_fit_rule(of.rule);
  const i64 wrong = fits ? of.fit : of.faster;
  return fmt::format("rule {}: {} pruned by it ran as an audit; {} of them {} ({:.0f} % wrong)", of.rule,
                     trials(of.trials), wrong, fits ? "fit" : "are faster than the best",
                     100 * static_cast<double>(wrong) / static_cast<double>(of.trials));
}

}  // namespace

Expected<std::vector<std::string>> shortcuts(store::Store& store, i64 sweep) {
  const auto found = store.shortcuts(sweep);
  if (!found) return tl::unexpected(found.error());
  std::vector<std::string> out;
  if (found->stopped_early > 0)
    out.push_back(fmt::format("{} stopped early, clearly slower than the best so far; this saved {}",
                              trials(found->stopped_early), report::rough_duration(found->seconds_saved)));
  for (const auto& each : found->audited)
    if (is_fit_rule(each.rule) || is_rank_rule(each.rule)) out.push_back(audited(each));
  return out;
}

}  // namespace sweep::cli
