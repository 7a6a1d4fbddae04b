// sweep doctor: whether this machine can run sweeps, before anything is queued.
#include <ostream>

#include "base/files.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/launch_options.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/check_answers.h"
#include "orchestrator/driver/cluster_check.h"
#include "orchestrator/driver/doctor_rules.h"

namespace sweep::cli {
namespace {

using driver::ClusterCheckRequest, driver::Finding;

// Prints and gives the exit code. `strategies`: with the table of what was tested where.
int show(Io& io, const std::vector<Finding>& findings, bool as_json, bool strategies) {
  const auto here = driver::read_selftest_results(state_folder() / "selftest.json");
  if (!here) return refuse(io, here.error());
  if (as_json) {
    print_document(io, driver::doctor_json(findings, *here));
  } else {
    io.out << driver::findings_text(findings);
    if (strategies) io.out << "\n" << driver::strategy_table(*here);
  }
  return driver::healthy(findings) ? kAnswered : kUnanswered;
}

int check(Io& io, const ClusterCheckRequest& request, bool as_json) {
  const std::string_view local = driver::launchers().front().name;
  const auto& launch = request.selftest.launch;
  const auto here = [&] { return show(io, driver::check_this_machine(request.selftest.db), as_json, true); };
  if (launch.on == local || (launch.on.empty() && request.selftest.grid.empty() && launch.job == 0))
    return here();
  const auto place = driver::place_of(request.selftest);
  if (!place) return refuse(io, place.error());
  if (place->choice.on == local) return here();
  const auto findings = driver::check_cluster(request, *place, progress_lines(io, true));
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
  c->add_flag("--json", *json, kJsonDocument);
  c->callback([r, where, request, json] {
    r.chosen = [r, where, request, json] {
      request->selftest.db = where->db;
      return check(r.io, *request, *json);
    };
  });
}

}  // namespace sweep::cli
