#include "orchestrator/predict/effects.h"

#include <algorithm>
#include <map>

#include "orchestrator/predict/layout.h"

namespace sweep::predict {
namespace {

using Quantity = double (*)(const Layout&);

const std::map<std::string, Quantity>& effect_quantities() {
  static const std::map<std::string, Quantity> all{
      {"nodes", [](const Layout& l) { return l.ranks.nodes; }},
      {"dp", [](const Layout& l) { return l.ranks.dp; }},
      {"tp", [](const Layout& l) { return l.ranks.tp; }},
      {"pp", [](const Layout& l) { return l.ranks.pp; }},
      {"zero", [](const Layout& l) { return l.ranks.zero; }},
      {"grad_accum", [](const Layout& l) { return l.batch.micros; }},
      {"micro_batch_size", [](const Layout& l) { return l.batch.micro_batch; }},
      {"tied", [](const Layout& l) { return l.model.tied ? 1.0 : 0.0; }},
      {"parameters", [](const Layout& l) { return l.model.parameters; }}};
  return all;
}

bool effect_holds(const Effect& e, const Layout& l, const std::string& hardware) {
  return e.hardware == hardware && std::ranges::all_of(e.when, [&](const EffectRange& range) {
           const double value = effect_quantity(range.of)(l);
           return value >= range.least && value <= range.most;
         });
}

}  // namespace

SeenEffects seen_effects(const std::vector<Effect>& effects, const Layout& l, const std::string& hardware) {
  SeenEffects out;
  for (const Effect& e : effects) {
    if (!effect_holds(e, l, hardware)) continue;
    if (e.kind == EffectKind::kSlowMessages) out.slow_messages = std::max(out.slow_messages, e.share);
    if (e.kind == EffectKind::kSlowCollectives) out.slow_collectives = true;
    if (e.kind == EffectKind::kFails && e.share > out.fails) out.fails = e.share, out.failure = e.how;
  }
  return out;
}

const std::vector<std::string>& effect_words() {
  static const std::vector<std::string> words{"slow_messages", "slow_collectives", "fails"};
  return words;
}

double (*effect_quantity(const std::string& name))(const Layout&) {
  const auto found = effect_quantities().find(name);
  return found == effect_quantities().end() ? nullptr : found->second;
}

}  // namespace sweep::predict
