#include "worker/command/phantom_place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "schema/codec.h"
#include "worker/command/trainer_process.h"

namespace sweep::command {
namespace {

constexpr i64 kMostGpus = 16;  // limit of a phantom node
constexpr std::size_t kLongestCounters = 64u << 10;

// `rank`: a number, or %r for that of the process.
std::string counters_file(const RankLaunch& launch, std::string_view rank) {
  return (results_file(launch, 0).parent_path() / fmt::format("phantom_{}.json", rank)).string();
}

}  // namespace

// One that programs and their libraries leave alone.
int phantom_counters_signal() {
  return SIGRTMAX - 3;
}

bool on_phantoms() {
  return std::getenv("SWEEP_PHANTOM") != nullptr;
}

i64 local_rank_of(const Attempt& attempt, const RankLaunch& launch) {
  return attempt.is_rehearsal() ? launch.rank % std::max<i64>(1, attempt.trial.gpus_per_node)
                                : launch.local_rank;
}

std::map<std::string, std::string> phantom_variables(const Attempt& attempt, const RankLaunch& launch) {
  if (!on_phantoms()) return {};
  std::map<std::string, std::string> out{
      {"SWEEP_PHANTOM_COUNTERS", counters_file(launch, "%r")},
      {"SWEEP_PHANTOM_COUNTERS_SIGNAL", std::to_string(phantom_counters_signal())}};
  if (!attempt.is_rehearsal()) return out;
  if (!attempt.starts_every_rank()) {
    out["SWEEP_STARTED_RANKS"] = fmt::format("{}", fmt::join(attempt.rehearsed_ranks, ","));
    out["SWEEP_STARTED_STORE"] = launch.rendezvous_dir + "/started_ranks";
  }
  const i64 gpus = std::max<i64>(1, attempt.trial.gpus_per_node);
  out["SWEEP_PHANTOM_GPUS"] = std::to_string(std::min(gpus, kMostGpus));
  if (const char* base = std::getenv("SWEEP_PHANTOM_NODE"); base != nullptr && attempt.trial.nodes > 1)
    out["SWEEP_PHANTOM_NODE"] = fmt::format("{}.{}", base, launch.rank / gpus);
  return out;
}

std::optional<PhantomUse> phantom_counters(const RankLaunch& launch) {
  if (!on_phantoms()) return std::nullopt;
  const auto text = files::read_from(counters_file(launch, std::to_string(launch.rank)), 0, kLongestCounters);
  const auto counted = text ? from_text<PhantomUse>(*text) : tl::unexpected(text.error());
  return counted ? std::optional(*counted) : std::nullopt;
}

void explain_on_phantoms(RankRecord& record) {
  if (record.outcome != Outcome::kCrash || record.consequential) return;
  const std::string& lacking = record.effective.phantom->not_answered;
  if (!lacking.empty()) {
    record.outcome = Outcome::kUnsupported;
    record.message = fmt::format("phantom GPUs do not answer {}: {}", lacking, record.message);
    return;
  }
  record.message += "; phantom GPUs compute no floats (a check of a loss or of a gradient fails there)";
}

}  // namespace sweep::command
