// Effects that were seen on one cluster and follow from no model: entries of its trainer profile. They hold where the
// hardware is the same and the layout and the model's size lie within what was measured. None refuses a trial.
#pragma once
#include <string>
#include <vector>

namespace sweep::predict {

struct Layout;

enum class EffectKind { kSlowMessages, kSlowCollectives, kFails };

struct EffectRange {
  std::string of;  // a name of effect_quantities()
  double least = 0, most = 0;
};

struct Effect {
  EffectKind kind = EffectKind::kFails;
  double share = 1;  // share of the trials of this kind that had it
  std::string hardware, how;
  std::vector<EffectRange> when;  // all of them
};

// Effects that hold for a layout, each as the share of such trials that had it.
struct SeenEffects {
  double slow_messages = 0, fails = 0;
  bool slow_collectives = false;
  std::string failure;  // how the trials failed
};

SeenEffects seen_effects(const std::vector<Effect>&, const Layout&, const std::string& hardware);

// "slow_messages", "slow_collectives", "fails", in the order of EffectKind.
const std::vector<std::string>& effect_words();
// The quantity of a layout by its name; null: there is none.
double (*effect_quantity(const std::string& name))(const Layout&);

}  // namespace sweep::predict
