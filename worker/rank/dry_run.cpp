#include "bench_kernels/step/dry_run.h"

#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "schema/codec.h"
#include "worker/rank/dry_run.h"

namespace sweep::rank {

Expected<void> dry_run(std::istream& trials, std::ostream& peaks, bool cuda) {
  const auto backend = cuda ? step::Backend::kCuda : step::Backend::kCpu;
  std::string line;
  for (i64 number = 1; std::getline(trials, line); ++number) {
    if (line.empty()) continue;
    const auto answer = parse_json(line)
                            .and_then([](const nlohmann::json& json) { return from_json<Trial>(json); })
                            .and_then([&](const Trial& trial) { return step::dry_run_line(trial, backend); });
    if (!answer)
      return fail("line " + std::to_string(number) + " of standard input: " + answer.error().message);
    peaks << *answer << "\n" << std::flush;
  }
  return {};
}

}  // namespace sweep::rank
