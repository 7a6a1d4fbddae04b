// The canonical form and the id of a trial.
#include <algorithm>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/string_generator.hpp>
#include <boost/uuid/uuid.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "schema/codec.h"
#include "schema/json_fields.h"

namespace sweep {
namespace {

// The namespace of trial ids: a random UUID fixed once; changing it changes every id.
constexpr boost::uuids::uuid kNamespace{
    {0x6b, 0x1f, 0x52, 0x0e, 0x27, 0x9d, 0x4c, 0x11, 0x9a, 0x60, 0x3d, 0x75, 0x8e, 0xc2, 0x04, 0xb7}};
constexpr char kHex[] = "0123456789abcdef";

nlohmann::json changed_dimensions(const ModelSpec& spec) {
  static const nlohmann::json plain = to_json(ModelSpec{});
  const nlohmann::json all = to_json(spec);
  nlohmann::json changed = nlohmann::json::object();
  for (const auto& [key, dimension] : all.items())
    if (dimension != plain.at(key)) changed[key] = dimension;
  return changed;
}

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

template <class Member>
std::string value_text(const Member& member) {
  if constexpr (std::is_same_v<Member, i64>)
    return std::to_string(member);
  else
    return dump(fields::value(member));
}

}  // namespace

// A JSON object with its keys in order. It is written without a tree of nodes: ids take two thirds of an expansion's time.
std::string canonical(const Trial& t) {
  std::vector<std::pair<std::string_view, std::string>> changed{{"model", model_of(t.spec)}};
  for_each_axis(t, [&](const FieldInfo& info, const auto& frozen, const auto& member) {
    if (info.key != std::string_view("model") && member != frozen)
      changed.emplace_back(info.key, value_text(member));
  });
  std::ranges::sort(changed, {}, [](const auto& axis) { return axis.first; });
  std::string out;
  for (const auto& [key, value] : changed) {
    out += out.empty() ? '{' : ',';
    out += '"';
    out += key;
    out += "\":";
    out += value;
  }
  return out + '}';
}

std::string trial_id(const Trial& t) {
  return name_hash(canonical(t));
}

std::string name_hash(std::string_view text) {
  const boost::uuids::uuid id = boost::uuids::name_generator_sha1(kNamespace)(text.data(), text.size());
  std::string hex;
  for (std::size_t i = 0; i < 8; ++i) {
    hex += kHex[id.data[i] >> 4];
    hex += kHex[id.data[i] & 15];
  }
  return hex;
}

}  // namespace sweep
