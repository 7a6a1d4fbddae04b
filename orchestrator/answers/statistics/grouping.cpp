#include "orchestrator/answers/statistics/grouping.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "orchestrator/answers/format.h"

namespace sweep::answers {
namespace {

// Numbers pairs (a, b) with b < width in order of their first appearance. Few possible pairs are looked up in
// a table.
class Pairs {
 public:
  Pairs(std::size_t firsts, std::size_t width) : width_(width) {
    constexpr std::size_t kTable = 1 << 20;
    if (firsts * width <= kTable) table_.assign(firsts * width, kNew);
  }
  std::uint32_t number(std::uint32_t a, std::uint32_t b) {
    const std::size_t pair = a * width_ + b;
    std::uint32_t& number = table_.empty() ? map_.try_emplace(pair, kNew).first->second : table_[pair];
    if (number == kNew) number = count_++;
    return number;
  }
  std::size_t count() const { return count_; }

 private:
  static constexpr auto kNew = std::numeric_limits<std::uint32_t>::max();
  std::size_t width_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> table_;
  std::unordered_map<std::size_t, std::uint32_t> map_;
};

}  // namespace

CodedColumn coded_values(const ResultColumns& columns, const Field& field) {
  if (!field.is_label()) return columns.coded.find(field.name())->second;
  const CodedColumn& labels = columns.coded.find("labels")->second;
  CodedColumn out;
  std::vector<std::uint32_t> codes;
  ResultRow row;
  for (const Value& value : labels.values) {
    const auto* text = std::get_if<std::string>(&value);
    row.trial.labels = text ? *text : "";
    codes.push_back(out.code_of(field.of(row)));
  }
  out.of.reserve(labels.of.size());
  for (const std::uint32_t code : labels.of) out.of.push_back(codes[code]);
  return out;
}

Grouping group_by(const ResultColumns& columns, std::span<const Field> fields) {
  Grouping out;
  out.of.assign(columns.size(), 0);
  if (columns.size() == 0) return out;
  std::vector<CodedColumn> coded;
  std::size_t count = 1;
  for (const Field& field : fields) {
    const CodedColumn& column = coded.emplace_back(coded_values(columns, field));
    if (column.values.size() == 1) continue;
    Pairs pairs(count, column.values.size());
    for (std::size_t row = 0; row < out.of.size(); ++row)
      out.of[row] = pairs.number(out.of[row], column.of[row]);
    count = pairs.count();
  }
  constexpr auto kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> first(count, kNone);
  for (std::size_t row = out.of.size(); row-- > 0;) first[out.of[row]] = row;
  // Keys that are alike as people read them (1 and 1.0) are one group.
  std::map<std::vector<Value>, std::vector<std::uint32_t>, ValuesLess> by_key;
  for (std::uint32_t group = 0; group < count; ++group) {
    std::vector<Value> key;
    for (const CodedColumn& column : coded) key.push_back(column.at(first[group]));
    by_key[std::move(key)].push_back(group);
  }
  std::vector<std::uint32_t> place(count);
  for (const auto& [key, groups] : by_key) {
    for (const std::uint32_t group : groups) place[group] = static_cast<std::uint32_t>(out.keys.size());
    out.keys.push_back(key);
  }
  for (std::uint32_t& group : out.of) group = place[group];
  return out;
}

}  // namespace sweep::answers
