#include "worker/phantom/faults.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "worker/phantom/counters.h"
#include "worker/phantom/description.h"

namespace sweep::phantom {
namespace {

constexpr std::array<const char*, static_cast<int>(Fault::kCount)> kFaultNames = {
    "malloc_oom", "cublas_oom", "nccl_oom", "launch_failure", "nccl_error", "hang",
    "host_hang",  "abort_hang", "xid",      "slow_gpu",       "slow_link"};

void read_key(const std::string& word, FaultRule& rule) {
  const auto equals = word.find('=');
  const std::string key = word.substr(0, equals), value = equals == word.npos ? "" : word.substr(equals + 1);
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != 0 || number < 0)
    throw std::runtime_error("\"" + word + "\" is not KEY=NUMBER");
  if (key == "at")
    rule.at = static_cast<std::int64_t>(number);
  else if (key == "times")
    rule.times = static_cast<std::int64_t>(number);
  else if (key == "rank")
    rule.rank = static_cast<int>(number);
  else if (key == "device")
    rule.device = static_cast<int>(number);
  else if (key == "factor")
    rule.factor = number;
  else if (key == "code")
    rule.code = static_cast<std::uint64_t>(number);
  else
    throw std::runtime_error("\"" + key + "\" is none of at, times, rank, device, factor, code");
}

bool concerns(const FaultRule& rule, int device) {
  return (rule.rank < 0 || rule.rank == rank_of_process()) && (rule.device < 0 || rule.device == device);
}

}  // namespace

std::deque<FaultRule> Faults::parse(const std::string& text) {
  std::deque<FaultRule> out;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ';');) {
    std::istringstream words(item);
    std::string word;
    std::getline(words, word, ':');
    FaultRule rule;
    int kind = 0;
    while (kind < static_cast<int>(Fault::kCount) && word != kFaultNames[static_cast<std::size_t>(kind)])
      ++kind;
    if (kind == static_cast<int>(Fault::kCount)) throw std::runtime_error("\"" + word + "\" is no fault");
    rule.fault = static_cast<Fault>(kind);
    // The allocator tries again after giving memory back: a device that is full refuses that too.
    if (rule.fault == Fault::kMallocOom) rule.times = std::numeric_limits<std::int64_t>::max();
    while (std::getline(words, word, ':')) read_key(word, rule);
    out.push_back(rule);
  }
  return out;
}

Faults& Faults::get() {
  static auto* faults = []() -> Faults* {
    const char* text = std::getenv("SWEEP_PHANTOM_FAULTS");
    try {
      return new Faults(parse(text == nullptr ? "" : text));
    } catch (const std::exception& e) {
      say(std::string("SWEEP_PHANTOM_FAULTS cannot be used: ") + e.what());
      ::_exit(2);
    }
  }();
  return *faults;
}

const FaultRule* Faults::strikes(Fault fault, int device) {
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
