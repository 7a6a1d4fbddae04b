// sweep doctor: whether this machine can run sweeps, before anything is queued.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/cli/command.h"
#include "orchestrator/cli/doctor_cluster.h"
#include "orchestrator/cli/doctor_rules.h"
#include "orchestrator/cli/proofs.h"
#include "orchestrator/launch/capture.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

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

void check_folders(const Where& where, std::vector<Finding>& findings) {
  std::error_code ec;
  const auto shm = std::filesystem::space("/dev/shm", ec);
  if (ec)
    findings.push_back(
        {"/dev/shm", Health::kBad, "not there: the shared-memory backend needs it: " + ec.message()});
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

const char* mark(Health health) {
  return health == Health::kGood ? "ok" : health == Health::kWarning ? "warning" : "bad";
}

// One line each; the exit code.
int tell(Io& io, const std::vector<Finding>& findings) {
  std::size_t width = 0;
  for (const auto& finding : findings) width = std::max(width, finding.what.size());
  bool bad = false;
  for (const auto& finding : findings) {
    io.out << fmt::format("{:<8} {:<{}}  {}\n", mark(finding.health), finding.what, width, finding.detail);
    bad = bad || finding.health == Health::kBad;
  }
  return bad ? kUnanswered : kAnswered;
}

// What is proven of the strategies, by the project's tests and here.
int tell_strategies(Io& io, int code) {
  const auto here = read_proofs(state_folder() / "proven.json");
  if (!here) return refuse(io, here.error());
  io.out << "\n" << strategy_table(*here);
  return code;
}

int examine_cluster(Io& io, const ClusterWish& wish) {
  const auto section = launch_section_of(wish.proving.grid);
  const auto choice =
      section ? choose_launcher(*section, wish.proving.launch) : tl::unexpected(section.error());
  if (!choice) return refuse(io, choice.error());
  const auto findings =
      choice->on == "ssh" ? examine_ssh(io, wish, *choice) : examine_slurm(io, wish, *choice);
  return findings ? tell(io, *findings) : refuse(io, findings.error());
}

int examine(Io& io, const Where& where) {
  std::vector<Finding> findings;
  const auto node = ask("sweep-agent", {"--probe"}, findings);
  const auto rank = ask("sweep-rank", {"facts"}, findings);
  if (rank.contains("libtorch"))
    findings.push_back({"LibTorch", Health::kGood,
                        fmt::format("{}, CUDA {}", text_of(rank, "libtorch"),
                                    rank.contains("cuda") ? text_of(rank, "cuda") : "none")});
  for (auto& finding : judge_gpus(node, rank)) findings.push_back(std::move(finding));
  check_folders(where, findings);
  return tell_strategies(io, tell(io, findings));
}

}  // namespace

void add_doctor(Registry r) {
  auto* c = r.app.add_subcommand("doctor",
                                 "whether this machine, or a cluster, can run sweeps; what is proven where");
  auto where = std::make_shared<Where>();
  auto wish = std::make_shared<ClusterWish>();
  add_db(*c, *where);
  add_proving_options(*c, wish->proving);
  c->add_option("--nodes", wish->nodes, "nodes that are looked at, and that the small attempt spans (Slurm)")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  c->add_option("--hardware", wish->hardware, "what its ranks run on, a name of the catalogue")
      ->capture_default_str();
  c->callback([r, where, wish] {
    r.chosen = [r, where, wish] {
      const bool here = wish->proving.launch.on.empty() || wish->proving.launch.on == "local";
      wish->proving.db = where->db;
      return here ? examine(r.io, *where) : examine_cluster(r.io, *wish);
    };
  });
}

}  // namespace sweep::cli
