#include "worker/phantom/fault_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace sweep::phantom {
namespace {

constexpr std::array<std::string_view, static_cast<int>(Fault::kCount)> kNames = {
    "malloc_oom", "cublas_oom", "nccl_oom", "launch_failure", "nccl_error", "hang",
    "host_hang",  "abort_hang", "xid",      "slow_gpu",       "slow_link",  "module_oom"};
constexpr double kMostCounted = 1e15;  // a double holds each whole number up to here
constexpr double kMostRanks = 1e6, kMostDevices = 16, kMostXid = 1e6, kMostFactor = 1e6;

[[noreturn]] void refuse(std::string_view word, std::string_view why) {
  throw std::runtime_error("\"" + std::string(word) + "\" " + std::string(why));
}

// Returns the text before the next separator; `rest` becomes what follows it.
std::string_view take(std::string_view& rest, char separator) {
  const auto end = std::min(rest.find(separator), rest.size());
  const auto out = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return out;
}

struct Setting {
  std::string_view word;
  double number = 0;

  double at_most(double least, double most) const {
    if (number < least || number > most)
      refuse(word, "is not from " + std::to_string(least) + " to " + std::to_string(most));
    return number;
  }
  template <class Integer>
  Integer whole(double least, double most) const {
    if (number != std::floor(number)) refuse(word, "is no whole number");
    return static_cast<Integer>(at_most(least, most));
  }
};

void read_setting(std::string_view word, FaultRule& rule) {
  const auto equals = word.find('=');
  const auto key = word.substr(0, equals);
  const auto value = equals == word.npos ? std::string_view() : word.substr(equals + 1);
  Setting setting{word};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), setting.number);
  if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(setting.number))
    refuse(word, "is not KEY=NUMBER");
  if (key == "at")
    rule.at = setting.whole<std::int64_t>(1, kMostCounted);
  else if (key == "times")
    rule.times = setting.whole<std::int64_t>(1, kMostCounted);
  else if (key == "rank")
    rule.rank = setting.whole<int>(0, kMostRanks);
  else if (key == "device")
    rule.device = setting.whole<int>(0, kMostDevices - 1);
  else if (key == "factor")
    rule.factor = setting.at_most(0, kMostFactor);
  else if (key == "code")
    rule.code = setting.whole<std::uint64_t>(0, kMostXid);
  else
    refuse(key, "is none of at, times, rank, device, factor, code");
}

}  // namespace

std::deque<FaultRule> fault_rules(std::string_view text) {
  std::deque<FaultRule> out;
  while (!text.empty()) {
    auto item = take(text, ';');
    const auto kind = take(item, ':');
    const auto* const name = std::find(kNames.begin(), kNames.end(), kind);
    if (name == kNames.end()) refuse(kind, "is no fault");
    FaultRule& rule = out.emplace_back();
    rule.fault = static_cast<Fault>(name - kNames.begin());
    // The allocator tries again after giving memory back: a device that is full refuses that too.
    if (rule.fault == Fault::kMallocOom) rule.times = std::numeric_limits<std::int64_t>::max();
    while (!item.empty()) read_setting(take(item, ':'), rule);
  }
  return out;
}

}  // namespace sweep::phantom
