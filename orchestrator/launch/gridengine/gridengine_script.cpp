#include "orchestrator/launch/gridengine/gridengine_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "orchestrator/launch/batch/batch_script.h"
#include "runtime/attempt_token.h"
#include "schema/agent_call.h"

namespace sweep::launch {
namespace {

// Grid Engine sends SIGUSR1 and SIGUSR2 to the whole process group. This shell turns the warning (SIGUSR2) into
// SIGTERM for the agent, also where it came before the agent was started.
constexpr const char* kWarnings = R"(agent=
warned=
warn() { if [ -n "$agent" ]; then kill -TERM "$agent" 2>/dev/null; else warned=1; fi; }
trap '' USR1
trap warn USR2
)";
// `wait` returns early when a signal comes.
constexpr const char* kWaitForAgent = R"(agent=$!
if [ -n "$warned" ]; then kill -TERM "$agent" 2>/dev/null; fi
wait "$agent"
code=$?
while kill -0 "$agent" 2>/dev/null; do
  wait "$agent"
  code=$?
done
exit "$code"
)";

bool is_host_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

// "h=!(gpu1|gpu1.*|gpu2|gpu2.*)": Grid Engine may know a host by its full name. Empty: none is left out.
std::string without_hosts(const std::vector<std::string>& avoid) {
  std::string names;
  for (const auto& host : avoid)
    if (is_host_name(host))  // a node's own word: nothing else may get into the script
      names += fmt::format("{}{}|{}.*", names.empty() ? "" : "|", host, host);
  return names.empty() ? names : fmt::format("h=!({})", names);
}

std::string quoted(const std::string& text) {
  return text.find_first_of(" \t'") == std::string::npos ? text : fmt::format("\"{}\"", text);
}

std::vector<std::string> directives_of(const AllocationRequest& wanted, const GridEngineSettings& options) {
  std::vector<std::string> out{"-S /bin/bash", "-N " + batch_job_name(wanted.id), "-r n", "-notify",
                               "-w e"};  // a request that fits no host is refused instead of waiting for ever
  out.emplace_back("-j y -o /dev/null");  // the script writes its own log
  out.push_back(fmt::format("-l h_rt={}", static_cast<i64>(std::ceil(wanted.seconds))));
  for (const auto& [option, value] : batch_options(options)) {
    out.push_back(fmt::format("{} {}", option, quoted(value)));
    if (option == "-pe") out.back() += fmt::format(" {}", *options.pe_slots);
  }
  if (const auto avoid = without_hosts(wanted.avoid); !avoid.empty()) out.push_back("-l " + avoid);
  for (const auto& line : *options.extra) out.push_back(line);
  return out;
}

std::string agent_command(const AllocationRequest& wanted, const GridEngineSettings& options,
                          const Programs& programs) {
  std::string out = shell_word(programs.agent.string());
  for (const auto& word : agent_words(batch_agent_call(wanted, programs, *options.idle_seconds)))
    out += " " + shell_word(word);
  return out;
}

bool has_control_character(const std::string& text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace

Expected<std::string> gridengine_script(const AllocationRequest& wanted, const GridEngineSettings& options,
                                        const Programs& programs) {
  if (wanted.nodes > 1)
    return fail(
        fmt::format("Grid Engine gives sweep one host for an allocation, and {} are needed; run these trials "
                    "over ssh or Slurm",
                    wanted.nodes));
  auto head = batch_script_head("#$", directives_of(wanted, options));
  if (!head) return head;
  const auto command = agent_command(wanted, options, programs);
  if (has_control_character(command))  // qsub reads lines that begin with "#$", wherever they stand
    return fail(
        "a path of the agent, the rank or the database has a control character; rename that folder or file");
  std::string out = std::move(*head);
  out += "# One allocation of sweep: many trials, one after another, until the agent is told to finish.\n";
  out += fmt::format("exec </dev/null >>{} 2>&1\n", shell_word((wanted.spool / "gridengine.log").string()));
  // A second start would be a second agent on the same mailbox.
  out +=
      "if [ \"${RESTARTED:-0}\" -ne 0 ]; then echo 'started again by Grid Engine: nothing is done' >&2; exit "
      "0; fi\n";
  for (const auto& line : *options.prologue) out += line + "\n";
  const std::string mark = attempt_token(allocation_key(wanted.id, wanted.spool), 0);
  out += fmt::format("export {}={}\n", kAttemptVariable, shell_word(mark));
  out += kWarnings;
  // The prologue takes of the job's time, too. The agent ignores both signals.
  out += fmt::format("(trap '' USR2; exec {} {} \"$(({} - SECONDS))\") &\n", command, kTimeLimitOption,
                     static_cast<i64>(wanted.seconds - *options.signal_seconds));
  return out + kWaitForAgent;
}

}  // namespace sweep::launch
