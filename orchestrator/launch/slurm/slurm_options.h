// SlurmOptions: the settings of a run on Slurm, and what Slurm has said about its cluster. Values go to sbatch as they
// are; the reader of the file has refused what could end a directive early.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "base/expected.h"
#include "schema/launch_settings.h"

namespace sweep::launch {

struct SlurmOptions : SlurmSettings {
  std::optional<double> time_s{};     // the longest an allocation may be asked for
  std::optional<double> longest_s{};  // the partitions' limit for a job
  // Nodes by partition, as Slurm said before the run; "": of the default one.
  std::map<std::string, i64> idle{};
  // The number of an allocation that is there already: steps of it are started instead of jobs. 0: none.
  i64 existing_job = 0;
  std::optional<double> existing_job_ends_s{};  // its end on the steady clock; nullopt: it does not end
};

// Error: settings that do not fit together. They may come from two files.
Expected<SlurmOptions> slurm_options_from(const SlurmSettings&);

// Options of sbatch by their long names, with values as sbatch takes them.
using SbatchOptions = std::map<std::string, std::string>;
// The requests for a kind of hardware: the general settings, overridden by its own.
SbatchOptions sbatch_options_for(const std::string& hardware, const SlurmOptions&);
// The requests for the first node that replace these; empty: none.
SbatchOptions sbatch_options_of_head(const SlurmOptions&);

// Slurm's signal is asked for so many seconds before the end; it comes up to half a minute earlier.
i64 signal_before_end(const SlurmOptions&);
// Seconds before the end at which the agent ends what still runs; Slurm's signal does not come before that.
double reserved_seconds(const SlurmOptions&);

}  // namespace sweep::launch
