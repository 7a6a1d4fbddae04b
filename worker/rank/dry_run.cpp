#include "bench_kernels/step/dry_run.h"

#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "schema/codec.h"
#include "worker/rank/dry_run.h"

namespace sweep::rank {

Expected<void> dry_run(std::istream& trials, std::ostream& peaks, bool cuda, bool tensors) {
  const auto backend = cuda ? step::Backend::kCuda : step::Backend::kCpu;
  std::string line;
  for (i64 number = 1; std::getline(trials, line); ++number) {
    if (line.empty()) continue;
    const auto trial =
        parse_json(line).and_then([](const nlohmann::json& json) { return from_json<Trial>(json); });
    if (!trial)
      return fail("line " + std::to_string(number) + " of standard input: " + trial.error().message);
    const auto answer = step::dry_run_line(*trial, backend, tensors);
    peaks << (answer ? *answer : dump({{"trial", trial_id(*trial)}, {"error", answer.error().message}}))
          << "\n"
          << std::flush;
  }
  return {};
}

}  // namespace sweep::rank
