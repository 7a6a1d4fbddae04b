// JSON of what ranks and agents report: records with their samples, exits, ends, nodes, results; and how a
// rank is launched.
#include <charconv>

#include "schema/json_fields.h"
#include "schema/rank_launch.h"

namespace sweep {

using fields::Reader;
using fields::value;
using nlohmann::json;

namespace {

template <RefersTo<RankLaunch> L, class F>
void for_each_field(L& l, F&& f) {
  const auto each = [&](const char* key, auto& member) {
    f(record_field<false>(key, field_places::no_column()), member);
  };
  each("attempt_dir", l.attempt_dir), each("attempt_file", l.attempt_file);
  each("rendezvous_dir", l.rendezvous_dir), each("rank", l.rank);
  each("local_rank", l.local_rank), each("world", l.world), each("agent_pid", l.agent_pid);
  each("pgid", l.pgid), each("store", l.store), each("address", l.address);
  each("interface", l.interface), each("devices", l.devices), each("cores", l.cores);
}

const StepSample kNoSample;  // stands for the list of fields

template <class T>
bool is_absent(const T& member) {
  if constexpr (fields::IsOptional<T>::value)
    return !member;
  else
    return false;
}

// Leaves out absent members: a reader takes the default, which is absent.
template <class T>
json write(const T& object) {
  json j = json::object();
  for_each_field(object, [&](const auto& field, const auto& member) {
    if (!is_absent(member)) j[field.key] = value(member);
  });
  return j;
}

template <class T>
Expected<T> read(const json& j, std::string_view what) {
  T object;
  Reader in(j, what);
  for_each_field(object, [&](const auto& field, auto& member) { in.get(field.key, member); });
  return in.done(std::move(object));
}

// Agents of before the field wrote the nodes into the text only: "node 1 (its name): what was left; node 3
// (...".
std::vector<i64> nodes_named_in(std::string_view text) {
  constexpr std::string_view kNode = "node ";
  std::vector<i64> out;
  for (auto at = text.find(kNode); at != std::string_view::npos; at = text.find(kNode, at)) {
    at += kNode.size();
    i64 node = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), node);
    if (error == std::errc() && node >= 0 &&
        std::string_view(end, text.data() + text.size()).starts_with(" ("))
      out.push_back(node);
  }
  return out;
}

}  // namespace

json to_json(const Metrics& m) {
  json j = json::object();
  for_each_metric(m, [&](const FieldInfo& info, const auto& member) {
    if (member) j[info.key] = value(member);
  });
  return j;
}

template <>
Expected<Metrics> from_json<Metrics>(const json& j) {
  Metrics m;
  Reader in(j, "metrics");
  for_each_metric(
      m, [&](const FieldInfo& info, auto& member) { in.get(std::string(info.key).c_str(), member); });
  return in.done(std::move(m));
}

json to_json(const SentTraffic& s) {
  return write(s);
}
json to_json(const RankRecord& r) {
  return write(r);
}
void read_effective(RankRecord& r) {
  r.phantom = false, r.transport.reset();
  const bool may_tell = r.effective.find("phantom") != std::string::npos ||
                        r.effective.find("nccl") != std::string::npos;  // parsing is slower than looking
  const auto used = may_tell ? parse_json(r.effective) : json();
  if (!used || !used->is_object()) return;
  r.phantom = used->contains("phantom");
  const auto nccl = used->find("nccl");
  if (nccl == used->end() || !nccl->is_object()) return;
  const auto sockets = nccl->find("sockets");
  if (sockets != nccl->end() && *sockets == true) r.transport = Transport::kSockets;
}
json to_json(const RankExit& e) {
  return write(e);
}
json to_json(const GpuError& e) {
  return write(e);
}
json to_json(const AttemptEnd& e) {
  return write(e);
}
json to_json(const NodeRecord& n) {
  return write(n);
}
json to_json(const Result& r) {
  return write(r);
}
json to_json(const RankLaunch& l) {
  return write(l);
}

namespace fields {

json columns(const std::vector<StepSample>& samples) {
  struct Column {
    const char* key;
    json::array_t values;
    bool known;  // true if any sample has it
  };
  std::vector<Column> lists;
  for_each_field(kNoSample, [&](const auto& field, const auto& none) {
    lists.push_back({field.key, {}, !is_absent(none)});
  });
  for (Column& column : lists) column.values.reserve(samples.size());
  for (const StepSample& sample : samples) {
    auto list = lists.begin();
    for_each_field(sample, [&](const auto&, const auto& member) {
      list->known |= !is_absent(member);
      (list++)->values.push_back(value(member));
    });
  }
  json out = json::object();
  for (Column& column : lists)
    if (column.known) out[column.key] = std::move(column.values);
  return out;
}

bool read_columns(const json& j, std::vector<StepSample>& out) {
  out.clear();
  if (!j.is_object()) return false;
  std::vector<const json::array_t*> lists;  // nullptr: the column is absent, its member takes the default
  std::optional<std::size_t> length;
  bool sound = true;
  for_each_field(kNoSample, [&](const auto& field, const auto&) {
    const auto it = j.find(field.key);
    const auto* list = it == j.end() ? nullptr : it->template get_ptr<const json::array_t*>();
    lists.push_back(list);
    if (it == j.end()) return;
    if (list && !length) length = list->size();
    sound = sound && list && list->size() == *length;
  });
  if (!sound || length.value_or(0) > kMostSamples) return false;
  out.resize(length.value_or(0));
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto list = lists.begin();
    for_each_field(out[i], [&](const auto&, auto& member) {
      if (const auto* column = *list++) sound = sound && Reader::read((*column)[i], member);
    });
  }
  return sound;
}

}  // namespace fields

template <>
Expected<SentTraffic> from_json<SentTraffic>(const json& j) {
  return read<SentTraffic>(j, "sent traffic");
}
template <>
Expected<RankRecord> from_json<RankRecord>(const json& j) {
  auto record = read<RankRecord>(j, "rank record");
  if (record && !j.contains("phantom")) read_effective(*record);
  return record;
}
template <>
Expected<RankExit> from_json<RankExit>(const json& j) {
  return read<RankExit>(j, "rank exit");
}
template <>
Expected<GpuError> from_json<GpuError>(const json& j) {
  return read<GpuError>(j, "GPU error");
}
template <>
Expected<AttemptEnd> from_json<AttemptEnd>(const json& j) {
  auto end = read<AttemptEnd>(j, "attempt end");
  if (end && !j.contains("unclean_nodes")) end->unclean_nodes = nodes_named_in(end->cleanup_failure);
  return end;
}
template <>
Expected<NodeRecord> from_json<NodeRecord>(const json& j) {
  return read<NodeRecord>(j, "node record");
}
template <>
Expected<Result> from_json<Result>(const json& j) {
  return read<Result>(j, "result");
}
Expected<RankLaunch> rank_launch_from(const json& j) {
  return read<RankLaunch>(j, "rank launch");
}

}  // namespace sweep
