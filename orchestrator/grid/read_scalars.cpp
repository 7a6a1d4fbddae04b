#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "orchestrator/grid/read_values.h"

namespace sweep::grid {
namespace {

// The text of a node, cut short for messages.
std::string shown(const Node& node) {
  if (!node.is_scalar()) return std::string(node.kind_name());
  if (node.text.size() <= 60) return fmt::format("'{}'", node.text);
  std::size_t end = 60;
  while (end > 0 && (static_cast<unsigned char>(node.text[end]) & 0xC0u) == 0x80u) --end;  // whole characters
  return fmt::format("'{}...'", node.text.substr(0, end));
}

}  // namespace

Status check_keys(const Document& document, const Node& map, std::span<const std::string_view> known,
                  std::string_view where) {
  for (const Entry& entry : map.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    return document.refuse(entry.place, {ErrorKind::kUnknownName, entry.key}, "'{}' is not a key {}{}",
                           entry.key, where, suggestion(entry.key, {known.begin(), known.end()}));
  }
  return {};
}

Status need_map(const Document& document, const Node& node, Place at, std::string_view what) {
  if (node.is_map() && !node.entries.empty()) return {};
  return document.refuse(at, {ErrorKind::kInvalidValue, what},
                         node.is_map() ? fmt::format("{} is empty; fill it or remove it", what)
                                       : fmt::format("{} is a map of keys, not {}", what, node.kind_name()));
}

Status need_list(const Document& document, const Node& node, std::string_view what) {
  if (node.is_list()) return {};
  return document.refuse(node.place, {ErrorKind::kInvalidValue, what},
                         "{} is a list, not {}; write it as [a, b] or with a '-' per line", what,
                         node.kind_name());
}

Expected<i64> read_int(const Document& document, const Node& node, std::string_view what, i64 min, i64 max) {
  i64 value = 0;
  const char* const end = node.text.data() + node.text.size();
  const bool plus = node.text.starts_with('+');
  const auto got = std::from_chars(node.text.data() + (plus ? 1 : 0), end, value);
  const std::string_view digits =
      std::string_view(node.text).substr(plus || node.text.starts_with('-') ? 1 : 0);
  if (!node.is_scalar() || node.quoted || got.ptr != end || digits.empty() || digits[0] < '0' ||
      digits[0] > '9' || (digits.size() > 1 && digits[0] == '0')) {
    return document.refuse(node.place, {ErrorKind::kInvalidValue, what},
                           "{} is {}; it takes a whole number from {} to {}, written as digits{}", what,
                           shown(node), min, max, node.quoted ? " without quotes" : "");
  }
  if (got.ec != std::errc{} || value < min || value > max) {
    return document.refuse(node.place, {ErrorKind::kInvalidValue, what},
                           "{} is {}; it takes a whole number from {} to {}", what, shown(node), min, max);
  }
  return value;
}

Expected<double> read_real(const Document& document, const Node& node, std::string_view what, double min,
                           double max) {
  double value = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto got = std::from_chars(node.text.data(), end, value);
  const bool is_number = node.is_scalar() && !node.quoted && !node.text.empty() && got.ptr == end;
  if (!is_number || got.ec != std::errc{} || !std::isfinite(value) || value < min || value > max) {
    return document.refuse(node.place, {ErrorKind::kInvalidValue, what},
                           "{} is {}; it takes a number from {} to {}", what, shown(node), min, max);
  }
  return value;
}

Expected<bool> read_flag(const Document& document, const Node& node, std::string_view what) {
  if (node.is_scalar() && !node.quoted && (node.text == "true" || node.text == "false"))
    return node.text == "true";
  return document.refuse(node.place, {ErrorKind::kInvalidValue, what}, "{} is {}; it takes true or false",
                         what, shown(node));
}

Expected<std::string> read_word(const Document& document, const Node& node, std::string_view what,
                                std::size_t max_bytes) {
  if (!node.is_scalar() || node.text.empty())
    return document.refuse(node.place, {ErrorKind::kInvalidValue, what}, "{} is {}; it takes a word", what,
                           node.is_scalar() ? "empty" : node.kind_name());
  if (node.text.size() > max_bytes)
    return document.refuse(node.place, {ErrorKind::kInvalidValue, what}, "{} has {} bytes; at most {}", what,
                           node.text.size(), max_bytes);
  return node.text;
}

}  // namespace sweep::grid
