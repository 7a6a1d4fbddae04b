// Faults by instruction: SWEEP_PHANTOM_FAULTS, "KIND[:KEY=VALUE]...[;KIND...]" (docs/phantom.md, "Faults").
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>

#include "worker/phantom/fault_rules.h"

namespace sweep::phantom {

class Faults {
 public:
  static Faults& get();
  // Counts one more event of the kind that `fault` waits for. Returns the rule that injects it here, or null.
  const FaultRule* triggered(Fault fault, int device);
  double factor(Fault fault, int device) const;  // product of the rules' factors; 1: none
  bool any() const { return !rules_.empty(); }

 private:
  explicit Faults(std::deque<FaultRule> rules) : rules_(std::move(rules)) {}
  std::deque<FaultRule> rules_;
  std::atomic<std::int64_t> seen_[static_cast<int>(Fault::kCount)] = {};
};

}  // namespace sweep::phantom
