#include "orchestrator/driver/dry_runs.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "base/text.h"
#include "bench_kernels/shape/step_sizes.h"
#include "orchestrator/driver/scratch_folder.h"
#include "orchestrator/launch/programs.h"
#include "schema/codec.h"

namespace sweep::driver {
namespace {

// So many in one process: starting one takes a second, a dry run about 10 ms.
constexpr std::size_t kBatch = 200;
constexpr double kSecondsOfABatch = 3600;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

// A sentence; empty: every stage fits.
std::string refusal_of(const nlohmann::json& answer) {
  const auto refused = answer.find("refused");
  if (refused == answer.end() || !refused->is_object()) return {};
  const auto bytes = [&](const char* key) { return refused->value(key, 0.0); };
  return fmt::format(
      "a dry run of the step asks for {} on stage {} where {} are allocated, {} more are reserved in pieces "
      "that are "
      "too small, and {} are all that the allocator may reserve",
      human_bytes(bytes("bytes")), refused->value("stage", i64{0}), human_bytes(bytes("allocated_bytes")),
      human_bytes(bytes("reserved_bytes") - bytes("allocated_bytes")), human_bytes(bytes("limit_bytes")));
}

Expected<void> add_answers(const std::string& lines, std::map<std::string, DryRun>& out) {
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const auto answer = parse_json(line);
    if (!answer || !answer->is_object() || !answer->contains("trial"))
      return fail("sweep-rank dry-run wrote a line that is no answer");
    const std::string id = answer->value("trial", "");
    out[id] = {answer->value("peak_rank_bytes", 0.0), answer->value("error", ""), refusal_of(*answer)};
  }
  return {};
}

Expected<std::string> answers_of(std::span<const PlanEntry* const> batch, shape::KernelPath path) {
  const auto folder = ScratchFolder::make();
  if (!folder) return tl::unexpected(folder.error());
  const auto trials = folder->path() / "trials.jsonl";
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

}  // namespace

Expected<std::map<std::string, DryRun>> dry_runs(const std::vector<const PlanEntry*>& entries,
                                                 const std::function<void(std::size_t)>& progress) {
  std::map<std::string, DryRun> out;
  std::size_t done = 0;
  for (const auto path : {shape::KernelPath::kGpu, shape::KernelPath::kProcessor}) {
    std::vector<const PlanEntry*> mine;
    for (const PlanEntry* e : entries)
      if (shape::kernel_path(e->trial) == path) mine.push_back(e);
    for (std::size_t begin = 0; begin < mine.size(); begin += kBatch) {
      const auto batch = std::span(mine).subspan(begin, std::min(kBatch, mine.size() - begin));
      const auto answers = answers_of(batch, path);
      if (!answers) return tl::unexpected(answers.error());
      if (auto added = add_answers(*answers, out); !added) return tl::unexpected(added.error());
      progress(done += batch.size());
    }
  }
  return out;
}

}  // namespace sweep::driver
