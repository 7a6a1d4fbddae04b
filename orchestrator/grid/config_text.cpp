#include "orchestrator/grid/config_text.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/integers.h"
#include "base/number_in.h"
#include "schema/command_spec.h"

namespace sweep::grid {
namespace {

constexpr std::string_view kSpecial = ":#{}[],&*!|>'\"%@`\n\t\\";

// Numbers as YAML 1.1 reads them too: an exponent needs a point before it.
std::string yaml_number(std::string text) {
  const auto e = text.find('e');
  if (e != std::string::npos && text.find('.') == std::string::npos) text.insert(e, ".0");
  return text;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// The digits after 0x, 0b or a leading 0, which is octal in YAML 1.1. nullopt: none of these, or no such number.
std::optional<i64> whole_of_another_base(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return std::nullopt;
  const int base = digits[1] == 'x' ? 16 : digits[1] == 'b' ? 2 : 8;
  const std::string_view rest = digits.substr(base == 8 ? 1 : 2);
  return rest.starts_with('-') ? std::nullopt : number_in<i64>(rest, base);
}

// A number of YAML 1.1 that JSON does not have: +1, .5, 1., 1_000, 0x10, 010. Else the text.
ConfigTree number_or_text(const std::string& text) {
  std::string digits = text;
  if (!digits.starts_with('_')) std::erase(digits, '_');
  if (digits.starts_with('+')) digits.erase(0, 1);
  if (const auto other = whole_of_another_base(digits)) return *other;
  const auto whole = number_in<i64>(digits);
  if (whole && std::to_string(*whole) == digits) return *whole;
  const auto real = digits.find('.') == std::string::npos ? std::nullopt : number_in<double>(digits);
  return real && std::isfinite(*real) ? ConfigTree(*real) : ConfigTree(text);
}

// An unquoted scalar, as PyYAML reads it, which knows YAML 1.1.
ConfigTree unquoted(const std::string& text) {
  if (is_one_of(text, {"yes", "Yes", "YES", "on", "On", "ON"})) return true;
  if (is_one_of(text, {"no", "No", "NO", "off", "Off", "OFF"})) return false;
  auto value = config_value(text);
  return value.is_string() ? number_or_text(text) : value;
}

// A number in any form of YAML 1.1, or a date.
bool looks_like_number(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  const std::string_view size = text.substr(text.find_first_not_of("+-") == 1 ? 1 : 0);
  for (const std::string_view base : {"0x", "0X", "0b", "0B"})
    if (size.starts_with(base)) return true;
  return text.find_first_of(kDigits) != std::string_view::npos &&
         text.find_first_not_of("0123456789+-._eE") == std::string_view::npos;
}

// Text that YAML 1.1 reads as such without quotes: no flag, no number, no date. `.inf` and `.nan` have no form in JSON, so
// they are kept as text and written without quotes.
bool is_plain(const std::string& text) {
  if (is_one_of(text, {".inf", "-.inf", ".nan"})) return true;
  const bool word = !text.empty() && text.find_first_of(kSpecial) == std::string::npos &&
                    std::string_view(" ?-").find(text.front()) == std::string_view::npos &&
                    text.back() != ' ' && !is_one_of(text, {"<<", "=", "y", "Y", "n", "N"}) &&
                    !looks_like_number(text) &&
                    std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20; });
  return word && unquoted(text).is_string();
}

std::string yaml_scalar(const ConfigTree& value) {
  if (value.is_string() && is_plain(value.get<std::string>())) return value.get<std::string>();
  return value.is_number_float() ? yaml_number(value.dump()) : value.dump();
}

bool is_block(const ConfigTree& value) {
  return value.is_structured() && !value.empty();
}

void write_yaml(const ConfigTree& tree, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (tree.is_array()) {
    for (const auto& item : tree) {
      if (!is_block(item)) {
        out += margin + "- " + yaml_scalar(item) + "\n";
        continue;
      }
      std::string inner;
      write_yaml(item, indent + 2, inner);
      inner.replace(indent, 1, "-");
      out += inner;
    }
    return;
  }
  for (const auto& [key, value] : tree.items()) {
    out += margin + yaml_scalar(key) + ":";
    if (is_block(value)) {
      out += "\n";
      write_yaml(value, indent + 2, out);
    } else {
      out += " " + yaml_scalar(value) + "\n";
    }
  }
}

// Braces doubled; those around a rank's name stay single where they are part of a value.
std::string as_template(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto is_name = [&](std::string_view name) {
      return text.compare(at + 1, name.size(), name) == 0 && text.compare(at + 1 + name.size(), 1, "}") == 0;
    };
    const auto name = text[at] == '{' ? std::ranges::find_if(kRankNames, is_name) : kRankNames.end();
    if (name != kRankNames.end()) {
      out += "{" + std::string(*name) + "}";
      at += name->size() + 1;
    } else {
      out.append(text[at] == '{' || text[at] == '}' ? 2 : 1, text[at]);
    }
  }
  return out;
}

}  // namespace

ConfigTree config_value(std::string_view text) {
  if (text.empty() || text.size() > 64 || text.find_first_of("\"[{") != std::string_view::npos)
    return std::string(text);
  if (is_one_of(text, {"True", "TRUE"})) return true;
  if (is_one_of(text, {"False", "FALSE"})) return false;
  if (is_one_of(text, {"~", "Null", "NULL"})) return nullptr;
  auto value = ConfigTree::parse(text, nullptr, false);
  return value.is_primitive() && !value.is_discarded() ? value : ConfigTree(std::string(text));
}

ConfigTree config_tree(const Node& node) {
  if (node.is_scalar()) return node.quoted ? ConfigTree(node.text) : unquoted(node.text);
  if (node.is_map()) {
    auto out = ConfigTree::object();
    for (const Entry& entry : node.entries) out[entry.key] = config_tree(*entry.value);
    return out;
  }
  if (node.kind == Node::Kind::kNull) return nullptr;
  auto out = ConfigTree::array();
  for (const NodePtr& item : node.items) out.push_back(config_tree(*item));
  return out;
}

bool set_path(ConfigTree& tree, std::string_view path, ConfigTree value) {
  ConfigTree* at = &tree;
  while (true) {
    if (at->is_null()) *at = ConfigTree::object();
    if (!at->is_object()) return false;
    const auto dot = path.find('.');
    at = &(*at)[std::string(path.substr(0, dot))];
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  *at = std::move(value);
  return true;
}

std::string config_template(const ConfigTree& tree, ConfigFormat format) {
  const ConfigTree& whole = tree.is_null() ? ConfigTree::object() : tree;
  if (format == ConfigFormat::kJson) return as_template(whole.dump(2)) + "\n";
  std::string out;
  write_yaml(whole, 0, out);
  return as_template(out);
}

}  // namespace sweep::grid
