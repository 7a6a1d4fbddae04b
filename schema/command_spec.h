// CommandSpec: what a trial of the workload `command` runs. The orchestrator fills the grid's templates with
// the trial's axes; the names that only a rank knows (kRankNames) are filled where the command is started.
#pragma once
#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace sweep {

struct CommandSpec {
  // The program, searched in PATH, and its arguments. No shell reads them.
  std::vector<std::string> argv;
  // Variables set in its environment.
  std::map<std::string, std::string> environment;
  // Files written before it starts: relative path -> text, below the folder {files}.
  std::map<std::string, std::string> files;
  // Working folder, absolute; empty: the folder {files}.
  std::string folder;
  // One process on each node, which starts the others itself (torchrun, accelerate); else one for each rank.
  bool per_node = false;
  // The trainer goes on after the steps of the trial: its processes are ended then.
  bool stop_after_steps = false;
  // Metric -> regular expression whose first group is the number, for trainers that report nothing
  // themselves.
  std::map<std::string, std::string> log_patterns;
  // Values of the axes that the grid declares, whether or not a template names them: they are part of the
  // trial's id.
  std::map<std::string, std::string> axes;
  bool operator==(const CommandSpec&) const = default;
};

// Filled where the command starts: files (the folder of its files), rank, local_rank, node, world,
// local_world, master_addr, master_port.
inline constexpr std::array<std::string_view, 8> kRankNames{
    "files", "rank", "local_rank", "node", "world", "local_world", "master_addr", "master_port"};

// Reading it (from_json, codec.h) refuses wrong types, unknown keys, no program, a file outside of the
// folder, a variable that sweep sets itself.
nlohmann::json to_json(const CommandSpec&);
// Reads a trial's axis `program`.
Expected<CommandSpec> command_from(std::string_view program);
// torch.distributed.run and its older name: modules that start the ranks of a node.
bool is_launcher_module(std::string_view word);
// The word of a command that says which program it is: the script (.py, .sh) or the module that a launcher or sweep_trial
// starts, else its first word.
std::string script_of(const std::vector<std::string>& argv);
// A command that bash starts after these lines (the prologue), in their environment.
std::vector<std::string> after_prologue(const std::string& lines);
// The command as one rank runs it alone, after its prologue: without torchrun, `python -m torch.distributed.run` or deepspeed, which start a
// node's ranks; `accelerate launch` stays, which sets more than their place (roles.py makes it become the rank). Error: another launcher, or no
// script (.py) and no `-m MODULE` among its words.
Expected<CommandSpec> without_launcher(CommandSpec);
// Why a relative path cannot be one of `files`; empty: it can.
std::string why_not_a_file(std::string_view path);

}  // namespace sweep
