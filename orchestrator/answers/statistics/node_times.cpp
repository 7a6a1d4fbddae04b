#include "orchestrator/answers/statistics/node_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/json_values.h"
#include "orchestrator/answers/statistics/time_parts.h"
#include "orchestrator/answers/tables/measured.h"
#include "schema/hardware_kinds.h"

namespace sweep::answers {
namespace {

// The nodes of the attempt among those of its allocation: its load names them in the order of its ranks.
std::vector<const Environment*> nodes_of(const Trial& trial, const store::StoredRecords& records,
                                         std::span<const Environment> environments) {
  std::vector<const Environment*> out(static_cast<std::size_t>(trial.nodes), nullptr);
  const auto* load = records.end ? &records.end->load.nodes : nullptr;
  const bool whole = std::size(environments) == out.size();
  std::set<const Environment*> taken;
  for (std::size_t node = 0; node < out.size(); ++node)
    for (const Environment& each : environments) {
      const bool named = load != nullptr && load->size() == out.size() && (*load)[node].host == each.host;
      if (whole ? each.node != static_cast<i64>(node) : !named) continue;
      if (!taken.insert(&each).second) continue;
      out[node] = &each;
      break;
    }
  return out;
}

// A kind of device, by its slowest node.
struct Kind {
  std::string device;
  NodeTime slowest;
  double waited_ms = 0;  // the least of its nodes
};

std::vector<Kind> kinds_in(std::span<const NodeTime> nodes) {
  std::vector<Kind> out;
  for (const NodeTime& node : nodes) {
    if (node.device.empty()) continue;
    const auto kind = std::ranges::find(out, node.device, &Kind::device);
    if (kind == out.end()) {
      out.push_back({node.device, node, node.waited_ms});
      continue;
    }
    if (node.own_ms > kind->slowest.own_ms) kind->slowest = node;
    kind->waited_ms = std::min(kind->waited_ms, node.waited_ms);
  }
  std::ranges::stable_sort(out, std::greater(), [](const Kind& kind) { return kind.slowest.own_ms; });
  return out;
}

}  // namespace

std::vector<NodeTime> node_times(const Trial& trial, const store::StoredRecords& records,
                                 std::span<const Environment> environments) {
  std::vector<NodeTime> out;
  if (trial.nodes < 2 || std::ssize(records.records) != trial.world() || trial.gpus_per_node < 1) return out;
  const auto found = nodes_of(trial, records, environments);
  for (i64 node = 0; node < trial.nodes; ++node) {
    NodeTime& each = out.emplace_back();
    each.node = node, each.own_ms = -1;
    if (const Environment* of = found[static_cast<std::size_t>(node)])
      each.host = of->host, each.device = devices_of(*of);
  }
  for (const RankRecord& record : records.records) {
    const Metrics times = rank_times(record, false);
    const i64 node = record.rank / trial.gpus_per_node;
    if (!times.step_ms || !times.exposed_comm_ms || node >= trial.nodes) return {};
    NodeTime& each = out[static_cast<std::size_t>(node)];
    const double own = std::max(0.0, *times.step_ms - *times.exposed_comm_ms);
    if (own <= each.own_ms) continue;
    each.rank = record.rank, each.own_ms = own, each.waited_ms = *times.exposed_comm_ms;
  }
  return out;
}

Expected<std::vector<NodeTime>> node_times_of(store::Store& store, i64 sweep, const std::string& trial_id,
                                              const Trial& trial, i64 attempt) {
  if (trial.nodes < 2) return std::vector<NodeTime>();
  SWEEP_GET(const auto records, store.records_of(attempt));
  SWEEP_GET(const auto from, store.provenance(sweep, std::vector<std::string>{trial_id}));
  return node_times(trial, records, from.empty() ? std::vector<Environment>() : from.front().nodes);
}

std::vector<std::string> node_lines(std::span<const NodeTime> nodes) {
  std::vector<std::string> out;
  for (const NodeTime& each : nodes)
    out.push_back(fmt::format("node {}{}{}: rank {} computes {} ms of a step and waits {} ms", each.node,
                              each.host.empty() ? "" : " " + safe_text(each.host),
                              each.device.empty() ? "" : fmt::format(" ({})", each.device), each.rank,
                              significant(each.own_ms), significant(each.waited_ms)));
  return out;
}

std::string slower_kind(const Trial& trial, std::span<const NodeTime> nodes) {
  const auto kinds = kinds_in(nodes);
  if (kinds.size() < 2)
    return is_mixed(trial.hardware) && kinds.size() == 1
               ? fmt::format("the trial asks for {}, and all of its nodes have {}", trial.hardware,
                             kinds[0].device)
               : "";
  const Kind &slow = kinds.front(), &fast = kinds.back();
  if (fast.slowest.own_ms <= 0 || slow.slowest.own_ms <= fast.slowest.own_ms) return "";
  return fmt::format(
      "the nodes with {} are the slower ones: {} ms of a step, {} times the {} ms of those with {}, which "
      "wait {} "
      "ms{}",
      slow.device, significant(slow.slowest.own_ms), significant(slow.slowest.own_ms / fast.slowest.own_ms),
      significant(fast.slowest.own_ms), fast.device, significant(fast.waited_ms),
      trial.pp > 1 ? "; the layers of their pipeline stages count too" : "");
}

nlohmann::json node_times_json(std::span<const NodeTime> nodes) {
  nlohmann::json out = nlohmann::json::array();
  for (const NodeTime& each : nodes)
    out.push_back({{"node", each.node},
                   {"host", text_or_null(each.host)},
                   {"device", text_or_null(each.device)},
                   {"rank", each.rank},
                   {"own_ms", each.own_ms},
                   {"waited_ms", each.waited_ms}});
  return out;
}

}  // namespace sweep::answers
