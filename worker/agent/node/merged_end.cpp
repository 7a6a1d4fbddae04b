#include "worker/agent/node/merged_end.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace sweep::agent {
namespace {

// A value of one part, and how many ranks it speaks for.
template <class T>
struct OfPart {
  const T& value;
  double ranks;
  bool leads;
};
template <class T>
using OfParts = std::vector<OfPart<T>>;
using Numbers = OfParts<std::optional<double>>;
using Texts = OfParts<std::string>;
using Stamps = OfParts<i64>;

template <class Record>
Record merged(const OfParts<Record>& parts);

// The mean over the ranks of those parts that measured it.
template <class F>
std::optional<double> mean_of(const Numbers& parts, F&& form) {
  double sum = 0, ranks = 0;
  for (const auto& part : parts)
    if (part.value) sum += form(*part.value) * part.ranks, ranks += part.ranks;
  return ranks > 0 ? std::optional(sum / ranks) : std::nullopt;
}

std::string sentences(const Texts& parts) {
  std::vector<std::string> said;
  for (const auto& part : parts)
    if (!part.value.empty()) said.push_back(part.value);
  return fmt::format("{}", fmt::join(said, "; "));
}

// Each name once, of those that any part joined by +.
std::string names_of(const Texts& parts) {
  std::vector<std::string> names;
  for (const auto& part : parts) {
    std::istringstream joined(part.value);
    for (std::string name; std::getline(joined, name, '+');)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, "+"));
}

// 0: not known there.
i64 earliest(const Stamps& parts) {
  i64 out = 0;
  for (const auto& part : parts)
    if (part.value > 0 && (out == 0 || part.value < out)) out = part.value;
  return out;
}

template <Merge kRule, class T>
T join(const OfParts<T>& parts) {
  T out{};
  if constexpr (kRule == Merge::kFields) {
    return merged<T>(parts);
  } else if constexpr (kRule == Merge::kLeading) {
    for (const auto& part : parts)
      if (part.leads) out = part.value;
  } else if constexpr (kRule == Merge::kAllOf) {
    return std::ranges::all_of(parts, [](const auto& part) { return part.value; });
  } else if constexpr (kRule == Merge::kSum) {
    for (const auto& part : parts) out += part.value;
  } else if constexpr (kRule == Merge::kMean) {
    return mean_of(parts, [](double x) { return x; });
  } else if constexpr (kRule == Merge::kRootMeanSquare) {
    // Deviations over time: samples of several nodes are not taken at the same instants.
    out = mean_of(parts, [](double x) { return x * x; });
    if (out) out = std::sqrt(*out);
  } else if constexpr (kRule == Merge::kEach) {
    for (const auto& part : parts) out.insert(out.end(), part.value.begin(), part.value.end());
  } else if constexpr (kRule == Merge::kSentences) {
    return sentences(parts);
  } else if constexpr (kRule == Merge::kNames) {
    return names_of(parts);
  } else if constexpr (kRule == Merge::kEarliest) {
    return earliest(parts);
  } else if constexpr (kRule == Merge::kLatest) {
    for (const auto& part : parts) out = std::max(out, part.value);
  } else {
    static_assert(kRule == Merge::kHead, "the field has no rule in schema/records.def");
  }
  return out;
}

template <class Record>
Record merged(const OfParts<Record>& parts) {
  Record out;
  for_each_member(Of<Record>(), [&](const auto& field, auto member) {
    using T = std::remove_cvref_t<decltype(out.*member)>;
    OfParts<T> values;
    for (const auto& part : parts) values.push_back({part.value.*member, part.ranks, part.leads});
    out.*member = join<std::remove_cvref_t<decltype(field)>::kMerge>(values);
  });
  return out;
}

}  // namespace

AttemptEnd merged_end(const std::vector<PartEnd>& parts) {
  OfParts<AttemptEnd> ends;
  for (const PartEnd& part : parts) ends.push_back({*part.end, static_cast<double>(part.ranks), part.leads});
  return merged(ends);
}

}  // namespace sweep::agent
