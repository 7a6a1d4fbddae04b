#include "orchestrator/answers/tables/shortcuts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "schema/audit.h"

namespace sweep::answers {
namespace {

// A rule on memory is wrong for a trial that fits, the others for one that is faster than the best.
i64 wrong(const store::Shortcuts::Audited& of) {
  return is_fit_rule(of.rule) ? of.fit : of.faster;
}

std::string audited(const store::Shortcuts::Audited& of) {
  return fmt::format("rule {}: {} pruned by it ran as an audit; {} of them {} ({:.0f} % wrong)", of.rule,
                     counted(of.trials, "trial"), wrong(of),
                     is_fit_rule(of.rule) ? "fit" : "are faster than the best",
                     100 * static_cast<double>(wrong(of)) / static_cast<double>(of.trials));
}

}  // namespace

std::vector<std::string> shortcut_sentences(const store::Shortcuts& found) {
  std::vector<std::string> out;
  if (found.stopped_early > 0)
    out.push_back(fmt::format("{} stopped early, clearly slower than the best so far; this saved {}",
                              counted(found.stopped_early, "trial"), rough_duration(found.seconds_saved)));
  for (const auto& each : found.audited)
    if (is_audited_rule(each.rule)) out.push_back(audited(each));
  return out;
}

nlohmann::json shortcuts_json(const store::Shortcuts& found) {
  auto rules = nlohmann::json::array();
  for (const auto& each : found.audited)
    if (is_audited_rule(each.rule))
      rules.push_back({{"rule", each.rule}, {"trials", each.trials}, {"wrong", wrong(each)}});
  return {{"stopped_early", {{"trials", found.stopped_early}, {"seconds_saved", found.seconds_saved}}},
          {"audited", rules}};
}

}  // namespace sweep::answers
