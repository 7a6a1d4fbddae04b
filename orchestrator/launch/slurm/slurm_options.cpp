#include "orchestrator/launch/slurm/slurm_options.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "orchestrator/launch/batch/batch_script.h"

namespace sweep::launch {
namespace {

template <LaunchTable T>
void put_over(SbatchOptions& out, const T& table) {
  for (auto& [name, value] : batch_options(table)) out[name] = std::move(value);
}

}  // namespace

Expected<SlurmOptions> slurm_options_from(const SlurmSettings& settings) {
  SlurmOptions out{settings};
  out.time_s = limit_seconds(*settings.time);
  if (out.time_s && reserved_seconds(out) >= *out.time_s)
    return fail("launch.slurm: signal_seconds leaves nothing of time; make one smaller or the other larger");
  return out;
}

// Slurm looks at time limits every half minute (PERIODIC_TIMEOUT of slurmctld) and signals what is due by the
// next look.
constexpr double kSignalEarly = 30;

i64 signal_before_end(const SlurmOptions& options) {
  return std::max<i64>(1, static_cast<i64>(std::floor(*options.signal_seconds - kSignalEarly)));
}

double reserved_seconds(const SlurmOptions& options) {
  return std::max(*options.signal_seconds, static_cast<double>(signal_before_end(options)) + kSignalEarly);
}

SbatchOptions sbatch_options_for(const std::string& hardware, const SlurmOptions& options) {
  SbatchOptions out;
  put_over<SlurmSettings>(out, options);
  if (const auto own = options.hardware->find(hardware); own != options.hardware->end())
    put_over(out, own->second);
  return out;
}

SbatchOptions sbatch_options_of_head(const SlurmOptions& options) {
  SbatchOptions out;
  put_over(out, *options.head);
  return out;
}

}  // namespace sweep::launch
