// The batch script of an orchestrator that is itself a small Slurm job. It resumes a stored sweep. At a signal it ends
// without cancelling its allocations, and takes them over when Slurm starts it again. Pure text.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/expected.h"

namespace sweep::launch {

struct OrchestratorJob {
  std::string name;  // name of the job: orchestrator_job_name()
  std::string partition;
  std::map<std::string, std::string> asks;  // further options of sbatch by their long names: account, ...
  std::filesystem::path log;                // its words; absolute
  std::vector<std::string> words;           // the command that takes the sweep up; absolute paths
};

// One for each sweep of each database.
std::string orchestrator_job_name(const std::filesystem::path& absolute_db, const std::string& sweep);
// Error: a path or setting holds a control character.
Expected<std::string> orchestrator_script(const OrchestratorJob&);

}  // namespace sweep::launch
