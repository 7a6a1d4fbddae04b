#include "schema/labels.h"

#include <nlohmann/json.hpp>

#include "schema/codec.h"

namespace sweep {

// Asked for each axis of each row: the text is not parsed.
bool knows_axis(std::string_view labels, std::string_view axis) {
  constexpr std::string_view kBegin = R"({"@axes":")";
  if (!labels.starts_with(kBegin)) return true;
  labels.remove_prefix(kBegin.size());
  labels = labels.substr(0, labels.find('"'));
  for (auto at = labels.find(axis); at != std::string_view::npos; at = labels.find(axis, at + 1)) {
    const auto end = at + axis.size();
    if (at > 0 && labels[at - 1] == ' ' && end < labels.size() && labels[end] == ' ') return true;
  }
  return false;
}

nlohmann::json label_members(std::string_view labels) {
  if (labels.empty()) return nlohmann::json::object();
  auto parsed = parse_json(labels);
  return parsed && parsed->is_object() ? *std::move(parsed) : nlohmann::json::object();
}

}  // namespace sweep
