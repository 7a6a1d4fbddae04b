// The canonical form and the id of a trial.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/sha1.h"
#include "schema/codec.h"
#include "schema/json_fields.h"

namespace sweep {
namespace {

// The namespace of trial ids: a random UUID fixed once; changing it changes every id.
constexpr std::string_view kNamespace = "\x6b\x1f\x52\x0e\x27\x9d\x4c\x11\x9a\x60\x3d\x75\x8e\xc2\x04\xb7";
static_assert(kNamespace.size() == 16);
constexpr char kHex[] = "0123456789abcdef";

// Caches the last model, as neighbours in a grid mostly share one.
const std::string& model_of(const ModelSpec& spec) {
  thread_local ModelSpec last;
  thread_local std::string of_last = dump(changed_dimensions(last));
  if (spec != last) {
    of_last = dump(changed_dimensions(spec));
    last = spec;
  }
  return of_last;
}

// Whether JSON writes it as it is, between quotes.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

void add_quoted(std::string_view text, std::string& out) {
  out += '"', out += text, out += '"';
}

template <class Member>
void add_value(const Member& member, std::string& out) {
  if constexpr (std::is_same_v<Member, i64>) {
    out += std::to_string(member);
  } else if constexpr (std::is_same_v<Member, bool>) {
    out += member ? "true" : "false";
  } else if constexpr (AxisChoice<Member>) {
    add_quoted(to_string(member), out);
  } else {
    if constexpr (std::is_same_v<Member, std::string>)
      if (is_plain(member)) return add_quoted(member, out);
    out += dump(fields::value(member));
  }
}

// An axis that differs from its default: where its value stands in a text.
struct Changed {
  std::string_view key;
  std::size_t begin = 0, end = 0;
};

}  // namespace

nlohmann::json changed_dimensions(const ModelSpec& spec) {
  static const nlohmann::json plain = to_json(ModelSpec{});
  const nlohmann::json all = to_json(spec);
  nlohmann::json changed = nlohmann::json::object();
  for (const auto& [key, dimension] : all.items())
    if (dimension != plain.at(key)) changed[key] = dimension;
  return changed;
}

// A JSON object with its keys in order. It is written without a tree of nodes, which took half of an id's time.
std::string canonical(const Trial& t) {
  std::string values = model_of(t.spec);
  std::vector<Changed> changed{{"model", 0, values.size()}};
  changed.reserve(32);
  for_each_axis(t, [&](const FieldInfo& info, const auto& frozen, const auto& member) {
    if (member == frozen) return;
    const std::size_t begin = values.size();
    add_value(member, values);
    changed.push_back({info.key, begin, values.size()});
  });
  std::ranges::sort(changed, {}, &Changed::key);
  std::string out;
  out.reserve(2 * values.size());
  for (const Changed& axis : changed) {
    out += out.empty() ? '{' : ',';
    add_quoted(axis.key, out);
    out += ':';
    out.append(values, axis.begin, axis.end - axis.begin);
  }
  return out + '}';
}

std::string trial_id(const Trial& t) {
  return name_hash(canonical(t));
}

std::string name_hash(std::string_view text) {
  std::string named;
  named.reserve(kNamespace.size() + text.size());
  auto id = sha1(named.append(kNamespace).append(text));
  constexpr std::size_t kVersionAt = 6;
  constexpr std::uint8_t kBySha1 = 0x50;
  id[kVersionAt] = static_cast<std::uint8_t>((id[kVersionAt] & 0x0f) | kBySha1);
  std::string hex;
  hex.reserve(16);
  for (std::size_t i = 0; i < 8; ++i) {
    hex += kHex[id[i] >> 4];
    hex += kHex[id[i] & 15];
  }
  return hex;
}

}  // namespace sweep
