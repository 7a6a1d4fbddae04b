// The trial of `sweep doctor --on`: agents connect over TCP, ranks train a tiny model over all the nodes.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "orchestrator/driver/cluster_check.h"
#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep::driver {
namespace {

constexpr i64 kMostNodes = 8;  // the tiny batch divides over at most so many

// The strategy of the selftest that spans nodes with one rank each; every collective is run beside it.
Expected<Trial> trial_over_nodes(const ClusterCheckRequest& request, i64 nodes) {
  i64 spanned = 1;
  while (spanned * 2 <= std::min(nodes, kMostNodes)) spanned *= 2;
  SelfTestSetup setup;
  setup.hardware = request.hardware, setup.nodes = spanned, setup.ranks_per_node = 2;
  for (const auto& selftest : selftest_trials(setup))
    if (selftest.strategy == "dp" && selftest.trial) return *selftest.trial;
  return fail("no trial over the nodes can be made");
}

}  // namespace

std::vector<Finding> judge_node_trial(const SelfTestReport& report, const Trial& trial, i64 there,
                                      const std::string& events) {
  const auto found = report.outcomes.find(trial_id(trial));
  std::vector<Finding> out;
  if (there >= trial.nodes)
    out.push_back({"ports", Health::kGood, fmt::format("the agents of {} nodes met", there)});
  else
    out.push_back(
        {"ports", Health::kBad,
         fmt::format("the agents of {} of {} nodes met: {}{}", there, trial.nodes,
                     events.empty() ? report.why : events,
                     there == 0
                         ? ""
                         : "; they talk TCP on ephemeral ports of one interface: name it with interface, and "
                           "let the nodes reach each other on it")});
  if (found == report.outcomes.end() || found->second.outcome != Outcome::kOk) {
    out.push_back(
        {"loop", Health::kBad,
         found == report.outcomes.end()
             ? fmt::format("no answer: {}", events.empty() ? report.why : events)
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

namespace {

Expected<std::vector<Finding>> read_findings(const std::string& db, const SelfTestReport& report,
                                             const Trial& trial) {
  SWEEP_GET(auto store, store::Store::open(db, store::Mode::kReadOnly));
  SWEEP_GET(const auto seen, store->nodes_seen());
  SWEEP_GET(const auto first, store->first_event_but(EventKind::kScreen));
  auto findings = judge_node_trial(report, trial, static_cast<i64>(seen.size()), first);
  const auto& names = report.hosts;
  for (const auto& node : seen) {
    const auto at = static_cast<std::size_t>(node.node);
    const std::string& host = at < names.size() ? names[at] : node.host;
    if (!node.facts.screen) continue;
    const NodeScreen& screen = *node.facts.screen;
    findings.push_back({host + " speed", screen.slow.empty() ? Health::kGood : Health::kWarning,
                        screen.slow.empty() ? fmt::format("{:.0f} GFLOP/s, {:.1f} GB/s", screen.matmul_gflops,
                                                          screen.memory_gb_s)
                                            : screen.slow});
  }
  return findings;
}

}  // namespace

Expected<std::vector<Finding>> try_nodes(const ClusterCheckRequest& request, i64 nodes,
                                         const MakeObserver& make_observer) {
  SWEEP_GET(const auto trial, trial_over_nodes(request, nodes));
  const auto folder = std::filesystem::absolute(request.selftest.db).parent_path() /
                      fmt::format("sweep-doctor-{}", ::getpid());
  auto own = request.selftest;
  own.db = (folder / "doctor.db").string();
  own.launch.screen = "show";
  const auto report = run_selftests(own, "doctor", {trial}, make_observer);
  auto findings = report ? read_findings(own.db, *report, trial) : tl::unexpected(report.error());
  std::error_code ec;
  std::filesystem::remove_all(folder, ec);
  return findings;
}

}  // namespace sweep::driver
