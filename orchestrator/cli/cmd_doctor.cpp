// sweep doctor: whether this machine can run sweeps, before anything is queued.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/files.h"
#include "orchestrator/cli/as_json.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/launch_options.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/cluster_check.h"
#include "orchestrator/driver/machine.h"
#include "orchestrator/driver/rehearsal_check.h"
#include "orchestrator/driver/selftest_results.h"
#include "orchestrator/launch/capture.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

using driver::ClusterCheckRequest, driver::Finding, driver::Health, driver::judge_space, driver::program_dir;

constexpr double kGiB = 1 << 30;

// The JSON a companion answers; a program that is missing or broken is a finding.
nlohmann::json ask(const char* program, const std::vector<std::string>& arguments,
                   std::vector<Finding>& findings) {
  const auto said = launch::capture(program_dir() / program, arguments);
  const auto parsed = said.and_then([](const std::string& text) { return parse_json(text); });
  if (!parsed || !parsed->is_object()) {
    findings.push_back(
        {program, Health::kBad, parsed ? "its answer is not an object" : parsed.error().message});
    return nlohmann::json::object();
  }
  const std::string version = parsed->value("version", "");
  const bool same = version == kVersion;
  findings.push_back({program, same ? Health::kGood : Health::kBad,
                      same ? "version " + version
                           : fmt::format("version {}, but this is sweep {}: build both from one source",
                                         version, kVersion)});
  return *parsed;
}

void check_folders(const SweepSelector& where, std::vector<Finding>& findings) {
  std::error_code ec;
  const auto shm = std::filesystem::space("/dev/shm", ec);
  if (ec)
    findings.push_back(
        {"/dev/shm", Health::kBad, "missing; the shared-memory backend needs it: " + ec.message()});
  else
    findings.push_back(judge_space("/dev/shm", static_cast<double>(shm.available), kGiB / 2));
  const auto folder = std::filesystem::absolute(where.db).parent_path();
  const auto disk = std::filesystem::space(folder, ec);
  if (ec)
    findings.push_back({folder.string(), Health::kBad, ec.message()});
  else
    findings.push_back(judge_space(folder.string(), static_cast<double>(disk.available), kGiB));
  if (store::on_network_filesystem(folder))
    findings.push_back(
        {"database", Health::kWarning,
         folder.string() + " is on a network filesystem: no WAL; one host at a time holds the lease"});
}

// A machine that cannot rehearse can still run.
Finding judge_rehearsal() {
  const auto facts = driver::rehearsal_facts(program_dir() / "sweep-rank");
  if (const auto why = driver::cannot_rehearse(facts, driver::kRehearsedRanks))
    return {"rehearsals", Health::kWarning, *why};
  return {"rehearsals", Health::kGood,
          fmt::format("`sweep run --rehearse` can run: phantom GPUs in {}", facts.phantoms.string())};
}

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

int check_this_machine(Io& io, const SweepSelector& where, bool as_json) {
  std::vector<Finding> findings;
  const auto node = ask("sweep-agent", {"--probe"}, findings);
  const auto rank = ask("sweep-rank", {"facts"}, findings);
  if (rank.contains("libtorch"))
    findings.push_back({"LibTorch", Health::kGood,
                        fmt::format("{}, CUDA {}", text_of(rank, "libtorch"),
                                    rank.contains("cuda") ? text_of(rank, "cuda") : "none")});
  for (auto& finding : driver::judge_gpus(node, rank)) findings.push_back(std::move(finding));
  check_folders(where, findings);
  findings.push_back(judge_rehearsal());
  return show(io, findings, as_json, true);
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
      return here ? check_this_machine(r.io, *where, *json) : check_cluster(r.io, *request, *json);
    };
  });
}

}  // namespace sweep::cli
