#include "worker/phantom/faults.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "worker/phantom/counters.h"
#include "worker/phantom/description.h"

namespace sweep::phantom {
namespace {

bool concerns(const FaultRule& rule, int device) {
  return (rule.rank < 0 || rule.rank == rank_of_process()) && (rule.device < 0 || rule.device == device);
}

}  // namespace

Faults& Faults::get() {
  static auto* faults = []() -> Faults* {
    const char* text = std::getenv("SWEEP_PHANTOM_FAULTS");
    try {
      return new Faults(fault_rules(text == nullptr ? "" : text));
    } catch (const std::exception& e) {
      say(std::string("SWEEP_PHANTOM_FAULTS cannot be used: ") + e.what());
      ::_exit(2);
    }
  }();
  return *faults;
}

const FaultRule* Faults::triggered(Fault fault, int device) {
  if (rules_.empty()) return nullptr;
  const std::int64_t n = ++seen_[static_cast<int>(fault)];
  for (const FaultRule& rule : rules_)
    if (rule.fault == fault && n >= rule.at && n - rule.at < rule.times && concerns(rule, device))
      return &rule;
  return nullptr;
}

double Faults::factor(Fault fault, int device) const {
  double out = 1;
  for (const FaultRule& rule : rules_)
    if (rule.fault == fault && concerns(rule, device)) out *= rule.factor;
  return out;
}

}  // namespace sweep::phantom
