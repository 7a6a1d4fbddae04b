// sweep doctor: whether this machine can run sweeps, before anything is queued.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/files.h"
#include "orchestrator/cli/as_json.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/launch_options.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/cluster_check.h"
#include "orchestrator/driver/machine_check.h"
#include "orchestrator/driver/selftest_results.h"

namespace sweep::cli {
namespace {

using driver::ClusterCheckRequest, driver::Finding, driver::Health;

// One line each, or JSON; the exit code. `strategies`: with the table of what was tested where.
int show(Io& io, const std::vector<Finding>& findings, bool as_json, bool strategies) {
  const auto here = driver::read_selftest_results(state_folder() / "selftest.json");
  if (!here) return refuse(io, here.error());
  const bool bad = std::any_of(findings.begin(), findings.end(),
                               [](const Finding& finding) { return finding.health == Health::kBad; });
  const int code = bad ? kUnanswered : kAnswered;
  if (as_json) return print_document(io, doctor_json(findings, *here)), code;
  std::size_t width = 0;
  for (const auto& finding : findings) width = std::max(width, finding.what.size());
  for (const auto& finding : findings)
    io.out << fmt::format("{:<8} {:<{}}  {}\n", to_string(finding.health), finding.what, width,
                          finding.detail);
  if (strategies) io.out << "\n" << driver::strategy_table(*here);
  return code;
}

int check_cluster(Io& io, const ClusterCheckRequest& request, bool as_json) {
  const auto findings = driver::check_cluster(request, progress_lines(io, true));
  return findings ? show(io, *findings, as_json, false) : refuse(io, findings.error());
}

}  // namespace

void add_doctor(Registry r) {
  auto* c = r.app.add_subcommand(
      "doctor", "whether this machine, or a cluster, can run sweeps; which strategies were tested where");
  auto where = std::make_shared<SweepSelector>();
  auto request = std::make_shared<ClusterCheckRequest>();
  add_db(*c, *where);
  add_selftest_options(*c, request->selftest);
  c->add_option("--nodes", request->nodes, "nodes to check, and to run the test trial on (Slurm)")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  c->add_option("--hardware", request->hardware, "hardware of the test trial, a name of the catalogue")
      ->capture_default_str();
  auto json = std::make_shared<bool>(false);
  c->add_flag("--json", *json, "as JSON (docs/json.md)");
  c->callback([r, where, request, json] {
    r.chosen = [r, where, request, json] {
      const auto& on = request->selftest.launch.on;
      const bool here = on.empty() || on == driver::launchers().front().name;
      request->selftest.db = where->db;
      return here ? show(r.io, driver::check_this_machine(where->db), *json, true)
                  : check_cluster(r.io, *request, *json);
    };
  });
}

}  // namespace sweep::cli
