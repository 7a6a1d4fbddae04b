// The batch script of one allocation: directives, prologue, and the head agent in place of the shell, so that
// Slurm's signals reach it. Pure text; the same that `sweep plan --sbatch` shows.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/programs.h"
#include "orchestrator/launch/slurm/slurm_options.h"

namespace sweep::launch {

// Every directive without "#SBATCH ", in order. A text is quoted the way sbatch reads it.
std::vector<std::string> slurm_directives(const AllocationRequest&, const SlurmOptions&);
// Error: a path or setting holds a control character.
Expected<std::string> slurm_script(const AllocationRequest&, const SlurmOptions&, const Programs&);

// Seconds of an allocation asked for so long that its agent may use.
double usable_seconds(double asked_s, const SlurmOptions&);

// The words that start the head agent.
std::vector<std::string> head_agent_words(const AllocationRequest&, const SlurmOptions&, const Programs&);

// The program that starts a rank inside the container, for the agent outside; written into the spool.
std::string container_wrapper(const SlurmContainer&, const std::filesystem::path& rank,
                              const std::filesystem::path& spool);
std::filesystem::path container_wrapper_path(const std::filesystem::path& spool);

// One directive, quoted the way sbatch reads it; and a file name in which sbatch would expand %j and its
// like.
std::string slurm_directive(const std::string& name, const std::string& value);
std::string slurm_file_name(std::string path);

}  // namespace sweep::launch
