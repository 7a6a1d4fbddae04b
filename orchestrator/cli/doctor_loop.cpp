// The attempt of `sweep doctor --on`: agents that meet over TCP, ranks that train a tiny model over all the nodes.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "orchestrator/cli/doctor_cluster.h"
#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep::cli {
namespace {

constexpr i64 kMostNodes = 8;  // the tiny batch divides over no more

// The strategy of the selftest that spans nodes with one rank each; every collective is run beside it.
Expected<Trial> loop_trial(const ClusterCheckRequest& request, i64 nodes) {
  i64 spanned = 1;
  while (spanned * 2 <= std::min(nodes, kMostNodes)) spanned *= 2;
  Stage stage;
  stage.hardware = request.hardware, stage.nodes = spanned, stage.ranks_per_node = 2;
  for (const auto& selftest : selftest_trials(stage))
    if (selftest.strategy == "dp" && selftest.trial) return *selftest.trial;
  return fail("no attempt over the nodes can be made");
}

std::vector<Finding> judge_loop(const Proved& proved, const Trial& trial, std::size_t seen,
                                const std::string& events) {
  const auto found = proved.found.find(trial_id(trial));
  const auto there = static_cast<i64>(seen);
  std::vector<Finding> out;
  if (there >= trial.nodes)
    out.push_back({"ports", Health::kGood, fmt::format("the agents of {} nodes met", there)});
  else
    out.push_back(
        {"ports", Health::kBad,
         fmt::format(
             "the agents of {} of {} nodes met: {}; they talk TCP on ephemeral ports of one interface: "
             "name it with interface, and let the nodes reach each other on it",
             there, trial.nodes, events.empty() ? proved.why : events)});
  if (found == proved.found.end() || found->second.outcome != Outcome::kOk) {
    out.push_back(
        {"loop", Health::kBad,
         found == proved.found.end()
             ? fmt::format("no answer: {}", events.empty() ? proved.why : events)
             : fmt::format("{}: {}; NCCL_DEBUG=INFO or GLOO_SOCKET_IFNAME, and the nodes' firewall, are next",
                           to_string(found->second.outcome), found->second.reason)});
    return out;
  }
  const std::string over = kBackendTitles[static_cast<std::size_t>(backend_of(trial))];
  if (passed(found->second, tolerance_of(trial)))
    out.push_back({"loop", Health::kGood,
                   fmt::format("{} nodes trained equally ({}); collectives gave the right numbers",
                               trial.nodes, over)});
  else
    out.push_back({"loop", Health::kBad,
                   fmt::format("{} nodes did not compute what one does ({}): `sweep selftest` tells more",
                               trial.nodes, over)});
  return out;
}

// The hosts by the names that a grid gives them, in the order of the nodes; empty: nodes have the names they give themselves.
std::vector<std::string> named_hosts(store::Store& store) {
  std::vector<std::string> out;
  const auto text = store.latest_hosts("ssh");
  for (std::size_t at = 0; text && at < text->size();) {
    const auto end = std::min(text->find(", ", at), text->size());
    out.push_back(text->substr(at, end - at));
    at = end + 2;
  }
  return out;
}

Expected<std::vector<Finding>> read_loop(const std::string& db, const Proved& proved, const Trial& trial) {
  auto store = store::Store::open(db, store::Mode::kReadOnly);
  if (!store) return tl::unexpected(store.error());
  const auto seen = (*store)->nodes_seen();
  if (!seen) return tl::unexpected(seen.error());
  const auto first = (*store)->first_event_but("screen");
  if (!first) return tl::unexpected(first.error());
  auto findings = judge_loop(proved, trial, seen->size(), *first);
  const auto names = named_hosts(**store);
  for (const auto& node : *seen) {
    const auto at = static_cast<std::size_t>(node.node);
    const std::string& host = at < names.size() ? names[at] : node.host;
    const auto facts = parse_json(node.facts);
    if (!facts || !facts->contains("screen")) continue;
    const auto& screen = (*facts)["screen"];
    const std::string slow = text_of(screen, "slow");
    findings.push_back({host + " speed", slow.empty() ? Health::kGood : Health::kWarning,
                        slow.empty()
                            ? fmt::format("{:.0f} GFLOP/s, {:.1f} GB/s", number_of(screen, "matmul_gflops"),
                                          number_of(screen, "memory_gb_s"))
                            : slow});
  }
  return findings;
}

}  // namespace

Expected<std::vector<Finding>> examine_loop(Io& io, const ClusterCheckRequest& request, i64 nodes) {
  const auto trial = loop_trial(request, nodes);
  if (!trial) return tl::unexpected(trial.error());
  const auto folder = std::filesystem::absolute(request.selftest.db).parent_path() /
                      fmt::format("sweep-doctor-{}", ::getpid());
  ClusterCheckRequest own = request;
  own.selftest.db = (folder / "doctor.db").string();
  own.selftest.quiet = true;
  own.selftest.launch.screen = "show";
  const auto proved = run_selftests(io, own.selftest, "doctor", {*trial});
  auto findings = proved ? read_loop(own.selftest.db, *proved, *trial) : tl::unexpected(proved.error());
  std::error_code ec;
  std::filesystem::remove_all(folder, ec);
  return findings;
}

}  // namespace sweep::cli
