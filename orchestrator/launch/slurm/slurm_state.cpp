#include "orchestrator/launch/slurm/slurm_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/number_in.h"
#include "base/text.h"

namespace sweep::launch {
namespace {

struct StateWord {
  std::string_view word;
  Meaning meaning;
};
// slurm.schedmd.com/squeue.html, "JOB STATE CODES", of 22.05 to 25.05.
constexpr std::array kStates{
    StateWord{"PENDING", {Phase::kPending}},
    StateWord{"CONFIGURING", {Phase::kPending}},
    StateWord{"REQUEUED", {Phase::kPending}},
    StateWord{"REQUEUE_HOLD", {Phase::kPending}},
    StateWord{"REQUEUE_FED", {Phase::kPending}},
    StateWord{"SPECIAL_EXIT", {Phase::kPending}},
    StateWord{"RESV_DEL_HOLD", {Phase::kPending}},
    StateWord{"RUNNING", {Phase::kRunning}},
    StateWord{"RESIZING", {Phase::kRunning}},
    StateWord{"SIGNALING", {Phase::kRunning}},
    StateWord{"POWER_UP_NODE", {Phase::kPending}},
    StateWord{"SUSPENDED", {Phase::kSuspended}},
    StateWord{"STOPPED", {Phase::kSuspended}},
    StateWord{"COMPLETING", {Phase::kEnding}},
    StateWord{"STAGE_OUT", {Phase::kEnding}},
    StateWord{"COMPLETED", {Phase::kEnded, Blame::kNone}},
    StateWord{"CANCELLED", {Phase::kEnded, Blame::kExternal}},
    StateWord{"DEADLINE", {Phase::kEnded, Blame::kExternal}},
    StateWord{"PREEMPTED", {Phase::kEnded, Blame::kExternal}},
    StateWord{"REVOKED", {Phase::kEnded, Blame::kExternal}},
    StateWord{"TIMEOUT", {Phase::kEnded, Blame::kExternal}},
    StateWord{"BOOT_FAIL", {Phase::kEnded, Blame::kMachine}},
    StateWord{"FAILED", {Phase::kEnded, Blame::kMachine}},
    StateWord{"LAUNCH_FAILED", {Phase::kEnded, Blame::kMachine}},
    StateWord{"RECONFIG_FAIL", {Phase::kEnded, Blame::kMachine}},
    StateWord{"NODE_FAIL", {Phase::kEnded, Blame::kMachine}},
    StateWord{"OUT_OF_MEMORY", {Phase::kEnded, Blame::kMachine}},
};

// slurm.schedmd.com/sinfo.html, "NODE STATE CODES": states that run jobs, will run them, or only sleep.
constexpr std::array<std::string_view, 9> kWorkingNodes{"idle",        "mixed",        "allocated",
                                                        "completing",  "planned",      "reserved",
                                                        "powering_up", "powered_down", "powering_down"};

// A word may end in a sign: "*" says that the node does not answer, the others that it will come or is
// promised.
bool is_working_node(std::string_view state) {
  if (state.ends_with('*')) return false;
  while (!state.empty() && std::string_view("~#!%$@^-+").find(state.back()) != std::string_view::npos)
    state.remove_suffix(1);
  return std::find(kWorkingNodes.begin(), kWorkingNodes.end(), state) != kWorkingNodes.end();
}

// Waiting does not help: slurm.schedmd.com/job_reason_codes.html.
constexpr std::array<std::string_view, 18> kHopeless{"PartitionConfig",
                                                     "PartitionNodeLimit",
                                                     "PartitionTimeLimit",
                                                     "PartitionInactive",
                                                     "BadConstraints",
                                                     "InvalidAccount",
                                                     "InvalidQOS",
                                                     "JobHeldUser",
                                                     "JobHeldAdmin",
                                                     "AccountNotAllowed",
                                                     "QOSNotAllowed",
                                                     "DependencyNeverSatisfied",
                                                     "FrontEndDown",
                                                     "launch_failed_requeued_held",
                                                     "job_requeued_in_held_state",
                                                     "NonZeroExitCode",
                                                     "ReservationDeleted",
                                                     "AssociationJobLimit"};
constexpr std::array<std::string_view, 14> kDoubt{"Socket timed out",
                                                  "Unable to contact slurm controller",
                                                  "Connection refused",
                                                  "Connection reset",
                                                  "Connection timed out",
                                                  "Zero Bytes were transmitted",
                                                  "Message receive failure",
                                                  "slurm_receive_msg",
                                                  "Slurm controller in standby",
                                                  "Resource temporarily unavailable",
                                                  "Unexpected message received",
                                                  "System call interrupted",
                                                  "Too many open files",
                                                  "Cannot allocate memory"};

std::vector<std::string_view> split(std::string_view text, char separator, std::size_t at_most) {
  std::vector<std::string_view> out;
  while (out.size() + 1 < at_most) {
    const auto at = text.find(separator);
    if (at == std::string_view::npos) break;
    out.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  out.push_back(text);
  return out;
}

std::optional<i64> number(std::string_view text) {
  const auto value = number_in<i64>(text);
  return value.value_or(-1) >= 0 ? value : std::nullopt;
}

// A job of several parts is known by its first: "17+0".
std::optional<i64> job_number(std::string_view text) {
  if (const auto plus = text.find('+'); plus != std::string_view::npos)
    return text.substr(plus) == "+0" ? number(text.substr(0, plus)) : std::nullopt;
  return number(text);
}

constexpr std::size_t kSqueueFields = 7, kSacctFields = 5;
constexpr const char* kSqueueFormat = "%i|%T|%L|%N|%j|%D|%r";
constexpr const char* kSacctFormat = "JobIDRaw,State,NodeList,JobName,Reason";

// Others may give their jobs any name.
std::string own_user() {
  return fmt::format("--user={}", ::geteuid());
}

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

Meaning meaning_of(std::string_view state) {
  state = state.substr(0, state.find(' '));
  const bool cut = !state.empty() && state.back() == '+';
  if (cut) state.remove_suffix(1);
  for (const StateWord& known : kStates)
    if (known.word == state || (cut && known.word.substr(0, state.size()) == state)) return known.meaning;
  return {};
}

std::vector<std::string> squeue_by_name(const std::vector<std::string>& names) {
  return {"squeue",
          "--noheader",
          "--states=all",
          own_user(),
          "--name=" + joined(names),
          std::string("--format=") + kSqueueFormat};
}

// A submission of today is found by its name alone; sacct would look at today only without a start time.
std::vector<std::string> sacct_by_name(const std::vector<std::string>& names) {
  return {"sacct",
          "--noheader",
          "--parsable2",
          "--allocations",
          own_user(),
          "--starttime=now-30days",
          "--name=" + joined(names),
          std::string("--format=") + kSacctFormat};
}

// The last line: site plug-ins may talk before it. "17" or "17;cluster".
std::optional<i64> read_sbatch(std::string_view answer) {
  while (!answer.empty() && (answer.back() == '\n' || answer.back() == ' ')) answer.remove_suffix(1);
  if (const auto at = answer.rfind('\n'); at != std::string_view::npos) answer.remove_prefix(at + 1);
  return number(answer.substr(0, answer.find(';')));
}

std::vector<JobFacts> read_squeue(std::string_view answer) {
  std::vector<JobFacts> out;
  for (const auto line : split(answer, '\n', answer.size() + 1)) {
    const auto fields = split(line, '|', kSqueueFields);
    const auto id = job_number(fields[0]);
    if (fields.size() != kSqueueFields || !id || fields[1].empty()) continue;
    JobFacts facts;
    facts.id = *id;
    facts.state = fields[1], facts.nodes = fields[3], facts.name = fields[4];
    facts.seconds_left = limit_seconds(fields[2]);
    facts.reason = fields[6];
    out.push_back(std::move(facts));
  }
  return out;
}

std::vector<JobFacts> read_sacct(std::string_view answer) {
  std::vector<JobFacts> out;
  for (const auto line : split(answer, '\n', answer.size() + 1)) {
    const auto fields = split(line, '|', kSacctFields);
    const auto id = job_number(fields[0]);
    if (fields.size() != kSacctFields || !id || fields[1].empty()) continue;
    JobFacts facts;
    facts.id = *id;
    facts.state = fields[1], facts.nodes = fields[2], facts.name = fields[3];
    facts.reason = fields[4];
    out.push_back(std::move(facts));
  }
  return out;
}

std::vector<std::string> squeue_of_job(i64 job) {
  return {"squeue", "--noheader", "--states=all", fmt::format("--jobs={}", job),
          std::string("--format=") + kSqueueFormat};
}

std::vector<std::string> squeue_of_steps(i64 job) {
  return {"squeue", "--noheader", "--steps", fmt::format("--jobs={}", job), "--format=%i|%j"};
}

std::vector<StepFacts> read_steps(std::string_view answer) {
  std::vector<StepFacts> out;
  for (const auto line : split(answer, '\n', answer.size() + 1)) {
    const auto fields = split(line, '|', 2);
    if (fields.size() == 2 && fields[0].find('.') != std::string_view::npos)
      out.push_back({std::string(fields[0]), std::string(fields[1])});
  }
  return out;
}

std::optional<JobFacts> read_scontrol(std::string_view answer) {
  JobFacts facts;
  const auto line = answer.substr(0, answer.find('\n'));
  for (const auto word : split(line, ' ', line.size() + 1)) {
    const auto at = word.find('=');
    if (at == std::string_view::npos) continue;
    const auto key = word.substr(0, at), value = word.substr(at + 1);
    if (key == "JobId") facts.id = number(value).value_or(0);
    if (key == "JobName") facts.name = value;
    if (key == "JobState") facts.state = value;
    if (key == "Reason") facts.reason = value;
    if (key == "NodeList") facts.nodes = value == "(null)" ? std::string_view() : value;
  }
  if (facts.id == 0 || facts.state.empty()) return std::nullopt;
  return facts;
}

std::vector<std::string> sinfo_of(std::string_view partition) {
  std::vector<std::string> out{"sinfo", "--noheader", "--format=%a|%D|%T|%l|%P"};
  if (!partition.empty()) out.push_back(fmt::format("--partition={}", partition));
  return out;
}

// Without a name all partitions are listed, the default one with a star: jobs that name none go there.
PartitionFacts read_sinfo(std::string_view answer) {
  PartitionFacts out;
  const auto lines = split(answer, '\n', answer.size() + 1);
  const auto by_default = [](const auto& fields) { return fields.size() == 5 && fields[4].ends_with('*'); };
  const bool has_default =
      std::ranges::any_of(lines, [&](std::string_view line) { return by_default(split(line, '|', 5)); });
  for (const auto line : lines) {
    const auto fields = split(line, '|', 5);
    if (fields.size() < 3 || (has_default && !by_default(fields))) continue;
    const i64 count = number(fields[1]).value_or(0);
    out.up = out.up || fields[0] == "up";
    out.nodes += count;
    if (is_working_node(fields[2]))
      out.working += count;
    else
      out.others += fmt::format("{}{} {}", out.others.empty() ? "" : ", ", count, fields[2]);
    if (fields[2] == "idle") out.idle += count;
    if (fields.size() == 5) out.longest_s = limit_seconds(fields[3]);
  }
  return out;
}

std::vector<std::string> sinfo_idle() {
  return {"sinfo", "--noheader", "--states=idle", "--format=%P|%D|%T"};
}

std::map<std::string, i64> read_idle(std::string_view answer) {
  std::map<std::string, i64> out;
  for (const auto line : split(answer, '\n', answer.size() + 1)) {
    const auto fields = split(line, '|', 3);
    if (fields.size() != 3 || fields[2] != "idle") continue;
    const i64 count = number(fields[1]).value_or(0);
    const bool by_default = fields[0].ends_with('*');
    out[std::string(fields[0].substr(0, fields[0].size() - (by_default ? 1 : 0)))] += count;
    if (by_default) out[""] += count;
  }
  return out;
}

std::string slurm_time(double seconds) {
  const auto minutes = static_cast<i64>(std::ceil(std::max(seconds, 1.0) / 60));
  if (minutes < 24 * 60) return fmt::format("{:02}:{:02}:00", minutes / 60, minutes % 60);
  return fmt::format("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60);
}

// A job stays in the queue for good where it is beyond a limit on one job or node
// (QOSMaxWallDurationPerJobLimit, AssocMaxNodePerJobLimit, ...) or below a least size; limits on all jobs of
// a user or account (QOSMaxJobsPerUserLimit) pass.
bool is_hopeless(std::string_view reason) {
  const auto says = [&](std::string_view part) { return reason.find(part) != std::string_view::npos; };
  return says("PerJob") || says("PerNode") || reason.starts_with("QOSMin") ||
         std::any_of(kHopeless.begin(), kHopeless.end(),
                     [&](std::string_view known) { return reason.starts_with(known); });
}

// slurm.schedmd.com/resource_limits.html: AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit,
// AssocGrpSubmitJobsLimit, ...
bool takes_no_more(std::string_view error) {
  const auto at = error.find("SubmitJob");
  return (at != std::string_view::npos && error.find("Limit", at) != std::string_view::npos) ||
         error.find("temporarily unable to accept job") != std::string_view::npos;
}

std::string sbatch_refusal(std::string_view error) {
  constexpr std::string_view kWho = "sbatch: ", kError = "error: ";
  std::string out;
  for (auto line : split(error, '\n', error.size() + 1)) {
    for (const auto prefix : {kWho, kError})
      if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    if (!line.empty()) out += fmt::format("{}{}", out.empty() ? "" : "; ", line);
  }
  return out;
}

bool is_in_doubt(std::string_view error) {
  return std::any_of(kDoubt.begin(), kDoubt.end(),
                     [&](std::string_view known) { return error.find(known) != std::string_view::npos; });
}

}  // namespace sweep::launch
