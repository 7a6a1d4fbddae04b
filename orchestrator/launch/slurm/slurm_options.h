// SlurmOptions: what a site and a grid ask of Slurm, as `launch.slurm` of a grid file and `slurm` of a site
// profile spell it. Values go to sbatch as they are; what could end a directive early is refused.
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::launch {

struct SlurmContainer {
  std::string runtime;  // apptainer, singularity, enroot, pyxis; empty: none
  std::string image;
  std::vector<std::string> arguments;  // of the runtime, before the image
};

struct SlurmOptions {
  // Options of sbatch by their long names: partition, account, qos, ...; values as sbatch takes them.
  std::map<std::string, std::string> ask;
  // By catalogue name of the hardware: what is asked for instead.
  std::map<std::string, std::map<std::string, std::string>> hardware;
  std::map<std::string, std::string> head;  // of the first node alone: mem, constraint, ...
  std::vector<std::string> extra;           // further directives, verbatim
  std::vector<std::string> prologue;        // lines of the script before the agent starts
  SlurmContainer container;
  std::string interface;
  bool exclusive = true;              // whole nodes
  bool colocate = false;              // trials side by side on one node
  i64 slots = 0;                      // with colocate: GPUs (CPU ranks) of a node that may be busy at once
  std::optional<double> time_s;       // the longest an allocation may be asked for
  double signal_s = 60;               // the agent is told so long before the time limit
  double idle_s = 300;                // an agent without work and without word ends its allocation
  double lease_s = 15;                // silence between agents after which each side gives the other up
  std::optional<double> pending_s{};  // the longest an allocation may wait in the queue; absent: for ever
  std::optional<double> longest_s{};  // that the partitions allow a job
  std::map<std::string, i64>
      idle{};          // nodes by partition, as Slurm said before the run; "": of the default one
  double poll_s = 30;  // the longest between two questions to Slurm while nothing changes
  std::optional<double>
      existing_job_seconds_left{};  // of `standing`: seconds until it ends; absent: it does not
  i64 existing_job = 0;  // number of an allocation that is there already: steps of it instead of jobs
  i64 max_nodes = 0;     // held at once, all allocations together; 0: what the largest trial needs
  i64 max_allocations = 4;
  i64 allocation_nodes = 0;  // of one allocation, unless a trial needs more; 0: what max_nodes leaves
  double spread_s = 10;      // predicted work that is worth a further node while nodes stand idle; 0: none is
  double confirm_gpu_hours = 0;  // ask before a plan predicted above this; 0: never
};

// Of the merged JSON of site profiles and grid (each validated by the grid room).
Expected<SlurmOptions> slurm_options_from(const nlohmann::json& section);

// What is asked for a kind of hardware: the general settings, overridden by its own.
std::map<std::string, std::string> sbatch_options_for(const std::string& hardware, const SlurmOptions&);

// Slurm's signal is asked for so many seconds before the end; it comes up to half a minute earlier.
i64 signal_before_end(const SlurmOptions&);
// Seconds before the end at which the agent ends what still runs; Slurm's signal does not come before that.
double reserved_seconds(const SlurmOptions&);

// The options of sbatch that may be named in `ask`, `hardware` and `head`.
const std::vector<std::string>& sbatch_options();

}  // namespace sweep::launch
