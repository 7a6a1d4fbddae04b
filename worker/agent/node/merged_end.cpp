#include "worker/agent/node/merged_end.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace sweep::agent {
namespace {

// A field of one part's end, and the number of ranks that it covers.
template <class T>
struct OfPart {
  const T& value;
  double ranks;
};
template <class T>
using OfParts = std::vector<OfPart<T>>;
using Numbers = OfParts<std::optional<double>>;
using Texts = OfParts<std::string>;
using Stamps = OfParts<i64>;

// The mean over the ranks of those parts that measured it.
template <class F>
std::optional<double> mean_of(const Numbers& parts, F&& form) {
  double sum = 0, ranks = 0;
  for (const auto& part : parts)
    if (part.value) sum += form(*part.value) * part.ranks, ranks += part.ranks;
  return ranks > 0 ? std::optional(sum / ranks) : std::nullopt;
}

constexpr auto kSetByTheHead = []<class T>(const OfParts<T>&) { return T(); };
constexpr auto kAllOf = [](const OfParts<bool>& parts) {
  return std::ranges::all_of(parts, [](const auto& part) { return part.value; });
};
constexpr auto kMean = [](const Numbers& parts) { return mean_of(parts, [](double x) { return x; }); };
// Deviations over time: samples of several nodes are not taken at the same instants.
constexpr auto kRootMeanSquare = [](const Numbers& parts) {
  auto mean = mean_of(parts, [](double x) { return x * x; });
  if (mean) mean = std::sqrt(*mean);
  return mean;
};
constexpr auto kEachOf = []<class T>(const OfParts<std::vector<T>>& parts) {
  std::vector<T> out;
  for (const auto& part : parts) out.insert(out.end(), part.value.begin(), part.value.end());
  return out;
};
constexpr auto kSentences = [](const Texts& parts) {
  std::vector<std::string> said;
  for (const auto& part : parts)
    if (!part.value.empty()) said.push_back(part.value);
  return fmt::format("{}", fmt::join(said, "; "));
};
// Each name once, of those that any part joined by +.
constexpr auto kNames = [](const Texts& parts) {
  std::vector<std::string> names;
  for (const auto& part : parts) {
    std::istringstream joined(part.value);
    for (std::string name; std::getline(joined, name, '+');)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, "+"));
};
// 0: not known there.
constexpr auto kEarliest = [](const Stamps& parts) {
  i64 out = 0;
  for (const auto& part : parts)
    if (part.value > 0 && (out == 0 || part.value < out)) out = part.value;
  return out;
};
constexpr auto kLatest = [](const Stamps& parts) {
  i64 out = 0;
  for (const auto& part : parts) out = std::max(out, part.value);
  return out;
};

// The rule of each field of AttemptEnd: one without a line here does not compile.
namespace rule {
// NOLINTBEGIN(readability-identifier-naming): the names are those of the fields, which the table below spells.
constexpr auto attempt = kSetByTheHead;
constexpr auto cause = kSetByTheHead;
constexpr auto evidence = kSetByTheHead;
constexpr auto clean = kAllOf;
constexpr auto cleanup_failure = kSentences;
constexpr auto unclean_nodes = kSetByTheHead;
constexpr auto util_mean = kMean;
constexpr auto util_sd = kRootMeanSquare;
constexpr auto power_mean_w = kMean;
constexpr auto sm_clock_mhz = kMean;
constexpr auto throttle = kNames;
constexpr auto gpu_errors = kEachOf;
constexpr auto neighbours = kSetByTheHead;
constexpr auto started_unix_ns = kEarliest;
constexpr auto ended_unix_ns = kLatest;
// NOLINTEND(readability-identifier-naming)
}  // namespace rule

template <class T>
OfParts<T> of(const std::vector<PartEnd>& parts, T AttemptEnd::*member) {
  OfParts<T> out;
  for (const PartEnd& part : parts) out.push_back({part.end->*member, static_cast<double>(part.ranks)});
  return out;
}

}  // namespace

AttemptEnd merged_end(const std::vector<PartEnd>& parts) {
  AttemptEnd out;
#define ATTEMPT_END(type, member, value, place) out.member = rule::member(of(parts, &AttemptEnd::member));
#include "schema/records.def"
#undef ATTEMPT_END
  return out;
}

}  // namespace sweep::agent
