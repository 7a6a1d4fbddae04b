// SlurmEnvironment: the environment of Slurm's commands. They read variables that change what they ask, cancel,
// submit and print, and some of these go before what a script says; these are removed, so that a sweep does the
// same from every shell.
#pragma once
#include <string>
#include <vector>

namespace sweep::launch {

// NAME=VALUE, for the program argv[0]. What says how to reach Slurm stays, and so does what the script of an
// sbatch (its last word) leaves open: SBATCH_ACCOUNT, _CONSTRAINT, _EXPORT, _PARTITION, _QOS, _RESERVATION,
// _TIMELIMIT, _WCKEY. Questions are answered in UTC: the same time reads the same in every answer.
std::vector<std::string> slurm_environment(const std::vector<std::string>& argv, char* const* environment);

}  // namespace sweep::launch
