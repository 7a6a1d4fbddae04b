#include "orchestrator/search/features.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>

#include "orchestrator/search/labels.h"
#include "schema/codec.h"

namespace sweep::search {
namespace {

// Text as the number of its first appearance.
class Numbering {
 public:
  double of(const std::string& word) {
    return static_cast<double>(numbers_.try_emplace(word, numbers_.size()).first->second);
  }

 private:
  std::map<std::string, std::size_t> numbers_;
};

double scaled(double value) {
  return value > 0 ? std::log2(value) : value - 1;
}

}  // namespace

Features::Features(std::span<const Candidate> all, const Group& group) : size_(group.size()) {
  if (group.empty()) return;
  std::vector<Candidate> candidates;
  for (const std::size_t i : group) candidates.push_back(all[i]);
  const std::size_t count = candidates.size();
  std::vector<std::string> names;
  for_each_axis(*candidates.front().trial,
                [&](const FieldInfo& info, const auto&, const auto&) { names.emplace_back(info.key); });
  const std::size_t axes = names.size();
  std::vector<std::vector<double>> columns(axes, std::vector<double>(count));
  std::vector<bool> words(axes);
  std::vector<Numbering> numbering(axes);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t axis = 0;
    for_each_axis(*candidates[i].trial, [&](const FieldInfo& info, const auto&, const auto& value) {
      using T = std::decay_t<decltype(value)>;
      if (info.key == "program") {
        words[axis] = true;  // trials differ by axes of the workload, which are labels
      } else if constexpr (std::is_same_v<T, std::string>) {
        words[axis] = true, columns[axis][i] = numbering[axis].of(value);
      } else if constexpr (std::is_same_v<T, std::optional<i64>>) {
        columns[axis][i] = value ? scaled(static_cast<double>(*value)) : -1;
      } else {
        words[axis] = std::is_enum_v<T>;
        columns[axis][i] =
            std::is_enum_v<T> ? static_cast<double>(value) : scaled(static_cast<double>(value));
      }
      ++axis;
    });
  }
  for (std::size_t axis = 0; axis < axes; ++axis) add(names[axis], std::move(columns[axis]), words[axis]);
  add_labels(candidates);
}

// Axes of a workload.
void Features::add_labels(std::span<const Candidate> candidates) {
  const auto keys = own_axes(candidates);
  if (keys.empty()) return;
  std::vector<Labels> labels;
  for (const Candidate& c : candidates) labels.push_back(labels_of(*c.trial));
  for (const auto& key : keys) {
    std::vector<double> column;
    Numbering numbers;
    const bool numeric = std::ranges::all_of(
        labels, [&](const Labels& of) { return of.contains(key) && of.at(key).is_number(); });
    for (const Labels& of : labels) {
      const auto value = of.contains(key) ? of.at(key) : nlohmann::json();
      column.push_back(numeric ? scaled(value.get<double>()) : numbers.of(dump(value)));
    }
    add(key, std::move(column), !numeric);
  }
}

void Features::add(const std::string& name, std::vector<double> values, bool is_word) {
  const auto [least, most] = std::ranges::minmax(values);
  if (least == most) return;
  names_.push_back(name);
  is_word_.push_back(is_word);
  values_.push_back(std::move(values));
}

double Features::distance(std::size_t a, std::size_t b) const {
  double sum = 0;
  for (std::size_t axis = 0; axis < axes(); ++axis) sum += distance(axis, a, b);
  return sum;
}

}  // namespace sweep::search
