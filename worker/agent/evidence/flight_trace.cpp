#include "worker/agent/evidence/flight_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "schema/codec.h"

namespace sweep::agent {
namespace {

using nlohmann::json;

constexpr i64 kLargestRank = 1'000'000'000;
constexpr std::size_t kMostBytes = 32u << 20, kMostGroups = 64, kMostMembers = 8192, kLongestLabel = 80;
constexpr std::string_view kNotNamed =
    "undefined";  // PyTorch's word for a group that the program gave no name

std::string text(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>().substr(0, kLongestLabel)
                                               : std::string();
}

i64 number(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<i64>() : 0;
}

// "[0, 2, 4]"
std::vector<i64> numbers_in(std::string_view list) {
  std::vector<i64> out;
  const char *at = list.data(), *end = at + list.size();
  while (at != end && out.size() < kMostMembers) {
    i64 value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error == std::errc()) out.push_back(value);
    at = error == std::errc() ? next : at + 1;
  }
  return out;
}

// The name of an entry's group.
std::optional<std::string> group_of(const json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto name = entry.find("process_group");
  if (name == entry.end() || !name->is_array() || name->empty() || !(*name)[0].is_string())
    return std::nullopt;
  return (*name)[0].get<std::string>().substr(0, kLongestLabel);
}

bool flag(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_boolean() && it->get<bool>();
}

void read_members(const json& all, FlightTrace& trace) {
  const auto configs = all.find("pg_config");
  if (configs == all.end() || !configs->is_object()) return;
  for (const auto& config : *configs) {
    if (!config.is_object() || trace.groups.size() >= kMostGroups) continue;
    FlightTrace::Group group;
    group.label = text(config, "desc");
    if (const auto ranks = config.find("ranks"); ranks != config.end() && ranks->is_string())
      group.ranks = numbers_in(ranks->get_ref<const std::string&>());
    std::erase_if(group.ranks, [](i64 rank) { return rank < 0 || rank > kLargestRank; });
    trace.groups.emplace(text(config, "name"), std::move(group));
  }
}

// "nccl:_all_gather_base" -> all_gather; "nccl:recv 1<-0" -> recv, from the member 0 of the group;
// "gloo:all_reduce" -> all_reduce.
FlightTrace::Waiting waiting(const std::string& profiled, i64 place, const std::vector<i64>& ranks) {
  FlightTrace::Waiting out{place, profiled.substr(profiled.find(':') + 1), {}};
  if (out.operation.starts_with('_')) out.operation.erase(0, 1);
  if (out.operation.ends_with("_base")) out.operation.resize(out.operation.size() - 5);
  const auto blank = out.operation.find(' ');
  if (blank == std::string::npos) return out;
  const auto ends = numbers_in(std::string_view(out.operation).substr(blank));
  out.operation.resize(blank);
  if (ends.size() < 2) return out;
  const auto member = static_cast<std::size_t>(std::abs(ends[1]));  // "->" leaves no sign, "<-" one
  if (member < ranks.size()) out.peer = ranks[member];
  return out;
}

// Gloo describes one group, without a name; what was recorded has the group's name. Which of several groups it
// describes is not known.
void name_the_only_group(const json& entries, FlightTrace& trace) {
  const auto nameless = trace.groups.find("");
  if (nameless == trace.groups.end() || trace.groups.size() > 1) return;
  std::set<std::string> names;
  for (const json& entry : entries)
    if (const auto name = group_of(entry); name && names.size() < kMostGroups) names.insert(*name);
  FlightTrace::Group group = std::move(nameless->second);
  trace.groups.clear();
  if (names.size() != 1) group.ranks.clear();
  for (const std::string& name : names) trace.groups.emplace(name, group);
}

void add_entry(const json& entry, FlightTrace& trace) {
  const auto of = group_of(entry);
  const auto found = of ? trace.groups.find(*of) : trace.groups.end();
  if (found == trace.groups.end()) return;
  const auto name = entry.find("process_group");
  FlightTrace::Group& group = found->second;
  if (group.label.empty() && name->size() > 1 && (*name)[1].is_string() && (*name)[1] != kNotNamed)
    group.label = (*name)[1].get<std::string>().substr(0, kLongestLabel);
  // For Gloo the recorder only knows that an operation is over.
  const bool done = text(entry, "state") == "completed" || flag(entry, "retired");
  const bool message = flag(entry, "is_p2p");
  const i64 place = number(entry, message ? "op_id" : "collective_seq_id");
  const auto named = waiting(text(entry, "profiling_name"), place, group.ranks);
  if (!message && place >= group.begun) group.begun = place, group.last = named.operation;
  if (!message && done) group.done = std::max(group.done, place);
  if (!done && !group.waits) group.waits = named;
}

}  // namespace

FlightTrace read_flight_trace(std::string_view bytes) {
  FlightTrace trace;
  const auto all = parse_json(bytes, kMostBytes);
  if (!all || !all->is_object()) return trace;
  read_members(*all, trace);
  const auto entries = all->find("entries");
  if (entries == all->end() || !entries->is_array()) return trace;
  name_the_only_group(*entries, trace);
  for (const auto& entry : *entries) add_entry(entry, trace);
  return trace;
}

namespace {

// "0-7"; "0-24/8" for every eighth; else all of them with commas.
std::string compact(const std::vector<i64>& ranks) {
  if (ranks.size() < 2) return ranks.empty() ? "" : std::to_string(ranks.front());
  const i64 stride = ranks[1] - ranks[0];
  bool even = stride > 0;
  for (std::size_t i = 2; i < ranks.size(); ++i) even = even && ranks[i] - ranks[i - 1] == stride;
  if (even)
    return fmt::format("{}-{}{}", ranks.front(), ranks.back(), stride == 1 ? "" : fmt::format("/{}", stride));
  return fmt::format("{}", fmt::join(ranks, ","));
}

}  // namespace

std::vector<FlightGroup> groups_of(const FlightTrace& trace) {
  std::vector<FlightGroup> out;
  for (const auto& [name, group] : trace.groups) {
    FlightGroup& each = out.emplace_back(FlightGroup{name,
                                                     group.label.empty() ? name : group.label,
                                                     compact(group.ranks),
                                                     group.begun,
                                                     group.done,
                                                     group.last,
                                                     {},
                                                     {},
                                                     {}});
    if (!group.waits) continue;
    each.waits_in = group.waits->operation, each.number = group.waits->number;
    each.peer = group.waits->peer;
  }
  return out;
}

}  // namespace sweep::agent
