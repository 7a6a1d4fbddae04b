#include "orchestrator/driver/memory_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/text.h"
#include "bench_kernels/shape/step_sizes.h"
#include "orchestrator/driver/scratch_folder.h"
#include "orchestrator/launch/programs.h"
#include "orchestrator/plan/memory_pruning.h"
#include "schema/codec.h"
#include "schema/plan_entry.h"

namespace sweep::driver {
namespace {

using Measured = std::map<std::string, plan::MeasuredMemory>;

// The step's answers, by trial id.
struct DryRuns {
  Measured measured;
  std::map<std::string, std::string> errors;  // why the step does not run the trial
};

// So many in one process: starting one takes a second, a dry run about 10 ms.
constexpr std::size_t kBatch = 200;
constexpr double kSecondsOfABatch = 3600;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

// A sentence; empty: every stage fits.
std::string refusal_of(const DryRunAnswer& answer) {
  if (!answer.refused) return {};
  const DryRunRefusal& refused = *answer.refused;
  const auto words = [](i64 bytes) { return human_bytes(static_cast<double>(bytes)); };
  return fmt::format(
      "a dry run of the step asks for {} on stage {} where {} are allocated, {} more are reserved in pieces "
      "that are "
      "too small, and {} are all that the allocator may reserve",
      words(refused.bytes), refused.stage, words(refused.allocated_bytes),
      words(refused.reserved_bytes - refused.allocated_bytes), words(refused.limit_bytes));
}

Expected<void> add_answers(const std::string& lines, DryRuns& out) {
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const auto answer = from_text<DryRunAnswer>(line);
    if (!answer) return fail("sweep-rank dry-run: " + answer.error().message);
    if (answer->error.empty())
      out.measured[answer->trial] = {static_cast<double>(answer->peak_rank_bytes), refusal_of(*answer)};
    else
      out.errors[answer->trial] = answer->error;
  }
  return {};
}

Expected<std::string> answers_of(std::span<const PlanEntry* const> batch, shape::KernelPath path) {
  SWEEP_GET(const auto folder, ScratchFolder::make());
  const auto trials = folder.path() / "trials.jsonl";
  std::ofstream file(trials);
  for (const PlanEntry* e : batch) file << dump(to_json(e->trial)) << '\n';
  file.close();
  if (!file) return fail(trials.string() + ": cannot be written");
  const char* backend = path == shape::KernelPath::kGpu ? "cuda" : "cpu";
  auto answers = launch::capture(launch::companion("sweep-rank"),
                                 {"dry-run", "--trials", trials.string(), "--backend", backend},
                                 kSecondsOfABatch, kMostBytes);
  if (!answers) return fail("the dry run: " + answers.error().message);
  return answers;
}

// Trials that are asked without being told to: a process starts in a second and answers 40 to 100 of them in another.
constexpr std::size_t kMostUnasked = 200;

bool is_installed(const std::string& program) {
  return ::access(launch::companion(program).c_str(), X_OK) == 0;
}

std::vector<const PlanEntry*> nearest(std::vector<const PlanEntry*> near) {
  std::erase_if(near,
                [](const PlanEntry* e) { return shape::kernel_path(e->trial) != shape::KernelPath::kGpu; });
  const auto distance = [](const PlanEntry* e) { return std::abs(1 - plan::share_of_limit(*e).value_or(0)); };
  std::ranges::stable_sort(near, {}, distance);
  near.resize(std::min(near.size(), kMostUnasked));
  return near;
}

// Measures on tensors without data (`sweep-rank dry-run`). Error: sweep-rank is missing or fails.
Expected<Measured> measure(const std::vector<const PlanEntry*>& trials,
                           const std::function<void(const std::string&)>& say) {
  if (trials.empty()) return Measured();
  say(fmt::format("dry runs of {} near their memory limit", counted(std::ssize(trials), "trial")));
  DryRuns out;
  std::size_t done = 0;
  for (const auto path : {shape::KernelPath::kGpu, shape::KernelPath::kProcessor}) {
    std::vector<const PlanEntry*> mine;
    for (const PlanEntry* e : trials)
      if (shape::kernel_path(e->trial) == path) mine.push_back(e);
    for (std::size_t begin = 0; begin < mine.size(); begin += kBatch) {
      const auto batch = std::span(mine).subspan(begin, std::min(kBatch, mine.size() - begin));
      SWEEP_GET(const auto answers, answers_of(batch, path));
      SWEEP_TRY(add_answers(answers, out));
      if ((done += batch.size()) < trials.size()) say(fmt::format("dry runs: {}/{}", done, trials.size()));
    }
  }
  for (const auto& [id, error] : out.errors)
    say(fmt::format("trial {}: {}; its prediction stays", id, error));
  return std::move(out.measured);
}

}  // namespace

Expected<MemoryCheck> check_memory(Planned& planned, DryRunScope scope, double audit,
                                   const std::function<void(const std::string&)>& say) {
  plan::MemoryPruning pruning{planned.grid.limits.memory_margin, {}, audit, planned.grid.measure};
  const auto near = plan::near_memory_limit(planned.entries, pruning.margin);
  MemoryCheck check{near.size(), 0};
  const bool all = scope == DryRunScope::kAll;
  if (all || (scope == DryRunScope::kNearest && is_installed("sweep-rank"))) {
    auto measured = measure(all ? near : nearest(near), say);
    if (!measured && all) return tl::unexpected(measured.error());
    if (measured)
      pruning.dry_runs = std::move(*measured);
    else
      say(measured.error().message + "; the predictions of memory stand");
  }
  check.measured = pruning.dry_runs.size();
  plan::prune_memory(planned.entries, pruning);
  return check;
}

}  // namespace sweep::driver
