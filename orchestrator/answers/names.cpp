#include "orchestrator/answers/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace sweep::answers {
namespace {

// Charts show these beside the columns.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"ok", "measured"},
    {"max_batch", "largest micro-batch"},
    {"max_model", "largest model"},
    {"scaling [%]", "scaling efficiency [%]"},
};

std::size_t common_prefix(const std::vector<std::string>& labels) {
  std::size_t out = labels.front().size();
  for (const auto& label : labels) {
    const auto differ =
        std::mismatch(label.begin(), label.end(), labels.front().begin(), labels.front().end());
    out = std::min(out, static_cast<std::size_t>(differ.first - label.begin()));
  }
  while (out > 0 && out < labels.front().size() && (labels.front()[out] & 0xC0) == 0x80) --out;
  return out;
}

std::size_t common_suffix(std::vector<std::string> labels) {
  for (auto& label : labels) std::ranges::reverse(label);
  std::size_t out = common_prefix(labels);
  while (out > 0 && (labels.front()[out - 1] & 0xC0) == 0x80) --out;
  return out;
}

}  // namespace

Names::Names(std::span<const ResultRow> rows)
    : on_cpu_(!rows.empty() &&
              std::ranges::all_of(rows, [](const ResultRow& r) { return r.trial.hardware == "cpu"; })) {}

std::string Names::of(std::string_view key) const {
  std::string out(key);
  if (const Column* column = find_column(key); column && !column->title.empty()) out = column->title;
  for (const auto& [known, name] : kNames) {
    if (known == key) out = name;
  }
  if (const auto at = out.find("GPU"); on_cpu_ && at != std::string::npos) out.replace(at, 3, "rank");
  return out;
}

std::string Names::with_unit(const Field& field, const Scale& scale) const {
  const std::string name = of(field);
  const bool spelt = scale.unit.empty() || name.find(scale.unit) != std::string::npos || scale.unit == "MT/h";
  return spelt ? name : fmt::format("{} [{}]", name, scale.unit);
}

std::vector<std::string> shortened(std::vector<std::string> labels, std::size_t columns) {
  constexpr std::size_t kWorthwhile = 4;  // bytes that an ellipsis must save
  const auto longest = [&] {
    std::size_t out = 0;
    for (const auto& label : labels) out = std::max(out, display_width(label));
    return out;
  };
  if (labels.size() < 2 || longest() <= columns) return labels;
  const std::vector<std::string> whole = labels;
  if (const std::size_t cut = common_prefix(labels); cut >= kWorthwhile) {
    for (auto& label : labels) label = "…" + label.substr(cut);
  }
  if (longest() > columns) {
    if (const std::size_t cut = common_suffix(labels); cut >= kWorthwhile) {
      for (auto& label : labels) label = label.substr(0, label.size() - cut) + "…";
    }
  }
  return std::set<std::string>(labels.begin(), labels.end()).size() == labels.size() ? labels : whole;
}

}  // namespace sweep::answers
