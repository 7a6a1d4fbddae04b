#include "orchestrator/search/labels.h"

#include <fmt/format.h>

#include "schema/codec.h"
#include "schema/labels.h"

namespace sweep::search {
namespace {

template <class T>
std::string as_text(const T& value) {
  return fmt::format("{}", value);
}
std::string as_text(const std::optional<i64>& value) {
  return value ? fmt::format("{}", *value) : "none";
}

}  // namespace

Labels labels_of(const Trial& t) {
  return label_members(t.labels).get<Labels>();
}

std::set<std::string> own_axes(std::span<const Candidate> all) {
  std::map<std::pair<std::string, std::string>, nlohmann::json> seen;
  std::set<std::string> out;
  for (const Candidate& c : all) {
    if (c.trial->labels.empty()) continue;
    Trial t = *c.trial;
    t.program.clear();
    const auto id = trial_id(t);
    for (const auto& [key, value] : labels_of(*c.trial))
      if (seen.try_emplace({id, key}, value).first->second != value) out.insert(key);
  }
  return out;
}

std::string value_text(const Trial& t, const std::string& name) {
  const auto labels = labels_of(t);
  if (const auto label = labels.find(name); label != labels.end()) return dump(label->second);
  std::string out;
  for_each_axis(t, [&](const FieldInfo& info, const auto&, const auto& value) {
    if (info.key == name) out = as_text(value);
  });
  return out;
}

}  // namespace sweep::search
