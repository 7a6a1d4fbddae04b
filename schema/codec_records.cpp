// JSON of what is testified: records with their samples, exits, ends, nodes, results; and how a rank is
// launched.
#include <charconv>

#include "schema/json_fields.h"
#include "schema/rank_launch.h"

namespace sweep {

using fields::Reader;
using fields::value;
using nlohmann::json;

namespace {

template <class T, class F>
void for_each_member(T& s, F&& f, const StepSample*) {
  f("repeat", s.repeat), f("step", s.step), f("warmup", s.warmup), f("step_ns", s.step_ns);
  f("forward_ns", s.forward_ns), f("backward_ns", s.backward_ns), f("optimizer_ns", s.optimizer_ns);
  f("exposed_comm_ns", s.exposed_comm_ns), f("tokens", s.tokens), f("loss", s.loss);
  f("alloc_retries", s.alloc_retries);
}

template <class T, class F>
void for_each_member(T& r, F&& f, const RankRecord*) {
  f("attempt", r.attempt), f("rank", r.rank), f("outcome", r.outcome), f("oom_kind", r.oom_kind);
  f("phase", r.phase), f("part", r.part), f("step", r.step), f("message", r.message),
      f("oom_asked_bytes", r.oom_asked_bytes);
  f("ended_unix_ns", r.ended_unix_ns), f("consequential", r.consequential), f("samples", r.samples);
  f("startup_ns", r.startup_ns), f("peak_allocated_bytes", r.peak_allocated_bytes);
  f("peak_reserved_bytes", r.peak_reserved_bytes), f("baseline_bytes", r.baseline_bytes);
  f("alloc_retries", r.alloc_retries), f("ooms", r.ooms), f("host_peak_rss_bytes", r.host_peak_rss_bytes);
  f("cpu_percent", r.cpu_percent), f("effective", r.effective), f("sent", r.sent);
  f("expert_load", r.expert_load), f("skipped_steps", r.skipped_steps), f("loss_scale", r.loss_scale);
  f("phantom", r.phantom), f("transport", r.transport);
}

template <class T, class F>
void for_each_member(T& s, F&& f, const SentTraffic*) {
  f("strategy", s.strategy), f("calls", s.calls), f("bytes", s.bytes);
}

template <class T, class F>
void for_each_member(T& e, F&& f, const RankExit*) {
  f("attempt", e.attempt), f("rank", e.rank), f("pid", e.pid), f("exit_code", e.exit_code);
  f("signal", e.signal), f("killed_by_agent", e.killed_by_agent), f("oom_killed", e.oom_killed);
  f("ended_unix_ns", e.ended_unix_ns), f("log_tail", e.log_tail);
}

template <class T, class F>
void for_each_member(T& e, F&& f, const GpuError*) {
  f("host", e.host), f("gpu", e.gpu), f("rank", e.rank), f("xid", e.xid);
}

template <class T, class F>
void for_each_member(T& e, F&& f, const AttemptEnd*) {
  f("attempt", e.attempt), f("cause", e.cause), f("evidence", e.evidence), f("clean", e.clean);
  f("dirt", e.cleanup_failure), f("util_mean", e.util_mean), f("util_sd", e.util_sd),
      f("power_mean_w", e.power_mean_w);
  f("sm_clock_mhz", e.sm_clock_mhz), f("throttle", e.throttle), f("started_unix_ns", e.started_unix_ns);
  f("ended_unix_ns", e.ended_unix_ns), f("neighbours", e.neighbours);
  f("gpu_errors", e.gpu_errors), f("unclean_nodes", e.unclean_nodes);
}

template <class T, class F>
void for_each_member(T& n, F&& f, const NodeRecord*) {
  f("node", n.node), f("host", n.host), f("facts", n.facts);
}

template <class T, class F>
void for_each_member(T& r, F&& f, const Result*) {
  f("attempt", r.attempt), f("trial_id", r.trial_id), f("outcome", r.outcome), f("oom_kind", r.oom_kind);
  f("reason", r.reason), f("rank", r.rank), f("phase", r.phase), f("evidence", r.evidence);
  f("metrics", r.metrics), f("finished_unix_ns", r.finished_unix_ns);
}

template <class T, class F>
void for_each_member(T& l, F&& f, const RankLaunch*) {
  f("attempt_dir", l.attempt_dir), f("rendezvous_dir", l.rendezvous_dir), f("rank", l.rank);
  f("local_rank", l.local_rank), f("world", l.world), f("agent_pid", l.agent_pid), f("pgid", l.pgid);
  f("store", l.store), f("address", l.address), f("interface", l.interface);
  f("devices", l.devices), f("cores", l.cores);
}

const StepSample kNoSample;  // stands for the list of members

template <class T>
bool is_absent(const T& member) {
  if constexpr (fields::IsOptional<T>::value)
    return !member;
  else
    return false;
}

// What is absent is left out: a reader takes the default, which is absent.
template <class T>
json write(const T& object) {
  json j = json::object();
  for_each_member(
      object,
      [&](const char* key, const auto& member) {
        if (!is_absent(member)) j[key] = value(member);
      },
      static_cast<const T*>(nullptr));
  return j;
}

template <class T>
Expected<T> read(const json& j, std::string_view what) {
  T object;
  Reader in(j, what);
  for_each_member(
      object, [&](const char* key, auto& member) { in.get(key, member); }, static_cast<const T*>(nullptr));
  return in.done(std::move(object));
}

// Agents of before the field wrote the nodes into the text only: "node 1 (its name): what was left; node 3 (...".
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
    bool known;  // of any sample
  };
  std::vector<Column> lists;
  for_each_member(
      kNoSample,
      [&](const char* key, const auto& none) {
        lists.push_back({key, {}, !is_absent(none)});
      },
      static_cast<const StepSample*>(nullptr));
  for (Column& column : lists) column.values.reserve(samples.size());
  for (const StepSample& sample : samples) {
    auto list = lists.begin();
    for_each_member(
        sample,
        [&](const char*, const auto& member) {
          list->known |= !is_absent(member);
          (list++)->values.push_back(value(member));
        },
        static_cast<const StepSample*>(nullptr));
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
  for_each_member(
      kNoSample,
      [&](const char* key, const auto&) {
        const auto it = j.find(key);
        const auto* list = it == j.end() ? nullptr : it->get_ptr<const json::array_t*>();
        lists.push_back(list);
        if (it == j.end()) return;
        if (list && !length) length = list->size();
        sound = sound && list && list->size() == *length;
      },
      static_cast<const StepSample*>(nullptr));
  if (!sound || length.value_or(0) > kMostSamples) return false;
  out.resize(length.value_or(0));
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto list = lists.begin();
    for_each_member(
        out[i],
        [&](const char*, auto& member) {
          if (const auto* column = *list++) sound = sound && Reader::read((*column)[i], member);
        },
        static_cast<const StepSample*>(nullptr));
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
