#include "runtime/own_job.h"

#include <cstdlib>
#include <string_view>

#include "base/number_in.h"

namespace sweep {
namespace {

std::optional<i64> job_number(std::string_view text) {
  const auto value = number_in<i64>(text);
  return value.value_or(0) > 0 ? value : std::nullopt;
}

}  // namespace

std::optional<OwnJob> own_job(ReadVariable read) {
  const auto text = [read](const char* name) {
    const char* value = read(name);
    return std::string_view(value ? value : "");
  };
  if (const auto handed = text(kOrchestratorJobVariable); !handed.empty()) {
    const auto at = handed.find('@');
    const auto id = job_number(handed.substr(0, at));
    const auto cluster = at == std::string_view::npos ? std::string_view() : handed.substr(at + 1);
    if (id) return OwnJob{*id, std::string(cluster), true};
  }
  const auto id = job_number(text("SLURM_JOB_ID"));
  if (!id || text("SLURMD_NODENAME").empty()) return std::nullopt;
  return OwnJob{*id, std::string(text("SLURM_CLUSTER_NAME")), false};
}

std::optional<OwnJob> own_job() {
  return own_job([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace sweep
