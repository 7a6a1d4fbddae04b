#include <fmt/format.h>

#include "orchestrator/driver/doctor_rules.h"
#include "orchestrator/driver/machine.h"
#include "orchestrator/driver/rehearsal_check.h"
#include "orchestrator/launch/programs.h"
#include "orchestrator/store/store.h"
#include "schema/codec.h"
#include "schema/version.h"

namespace sweep::driver {
namespace {

constexpr double kGiB = 1 << 30;

// The facts that a companion answers; a program that is missing or broken is a finding.
template <class Facts>
Facts ask_program(const char* program, const std::vector<std::string>& arguments,
                  std::vector<Finding>& findings) {
  auto facts = launch::capture(launch::companion(program), arguments).and_then(from_text<Facts>);
  if (!facts) {
    findings.push_back({program, Health::kBad, facts.error().message});
    return {};
  }
  const std::string& version = facts->version;
  const bool same = version == kVersion;
  findings.push_back({program, same ? Health::kGood : Health::kBad,
                      same ? "version " + version
                           : fmt::format("version {}, but this is sweep {}: build both from one source",
                                         version, kVersion)});
  return std::move(*facts);
}

void check_folders(const std::filesystem::path& db, std::vector<Finding>& findings) {
  std::error_code ec;
  const auto shm = std::filesystem::space("/dev/shm", ec);
  if (ec)
    findings.push_back(
        {"/dev/shm", Health::kBad, "missing; the shared-memory backend needs it: " + ec.message()});
  else
    findings.push_back(judge_space("/dev/shm", static_cast<double>(shm.available), kGiB / 2));
  const auto folder = std::filesystem::absolute(db).parent_path();
  const auto disk = std::filesystem::space(folder, ec);
  if (ec)
    findings.push_back({folder.string(), Health::kBad, ec.message()});
  else
    findings.push_back(judge_space(folder.string(), static_cast<double>(disk.available), kGiB));
  if (store::on_network_filesystem(folder))
    findings.push_back(
        {"database", Health::kWarning,
         folder.string() +
             " is on a filesystem that hosts may share: no WAL; one host at a time holds the lease"});
}

// A machine that cannot rehearse can still run.
Finding judge_rehearsal() {
  const auto rank = launch::companion("sweep-rank");
  std::error_code ec;
  const auto facts = rehearsal_facts(std::filesystem::exists(rank, ec) ? rank : std::filesystem::path());
  if (const auto why = cannot_rehearse(facts, kRehearsedRanks))
    return {"rehearsals", Health::kWarning, why->message};
  return {"rehearsals", Health::kGood,
          fmt::format("`sweep run --rehearse` can run{}: phantom GPUs in {}",
                      facts.built_in ? "" : " commands", facts.phantoms.string())};
}

}  // namespace

std::vector<Finding> check_this_machine(const std::filesystem::path& db) {
  std::vector<Finding> findings;
  const auto node = ask_program<NodeProbe>("sweep-agent", {"--probe"}, findings);
  std::error_code ec;
  RankFacts rank;
  if (std::filesystem::exists(launch::companion("sweep-rank"), ec))
    rank = ask_program<RankFacts>("sweep-rank", {"facts"}, findings);
  else
    findings.push_back({"sweep-rank", Health::kWarning,
                        "not installed: the built-in training step cannot run, commands can; the wheel "
                        "sweep-bench-rank has it, scripts/quickstart builds it"});
  if (!rank.libtorch.empty())
    findings.push_back({"LibTorch", Health::kGood,
                        fmt::format("{}, CUDA {}", rank.libtorch, rank.cuda.empty() ? "none" : rank.cuda)});
  for (auto& finding : judge_gpus(node, rank)) findings.push_back(std::move(finding));
  check_folders(db, findings);
  findings.push_back(judge_rehearsal());
  return findings;
}

}  // namespace sweep::driver
