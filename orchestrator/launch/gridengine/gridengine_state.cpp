#include "orchestrator/launch/gridengine/gridengine_state.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <map>
#include <utility>

#include "base/number_in.h"

namespace sweep::launch {
namespace {

constexpr std::string_view kJobBegin = "<job_list", kJobEnd = "</job_list>";

std::string unescaped(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};
  std::string out;
  while (!text.empty()) {
    std::size_t taken = 1;
    char next = text[0];
    for (const auto& [entity, character] : kEntities)
      if (text.starts_with(entity)) next = character, taken = entity.size();
    out += next;
    text.remove_prefix(taken);
  }
  return out;
}

// Text of the first element whose tag begins like this ("<state", `<hard_request name="h_rt"`); empty: there
// is none.
std::string text_of_element(std::string_view xml, std::string_view tag) {
  for (auto at = xml.find(tag); at != std::string_view::npos; at = xml.find(tag, at + 1)) {
    const char next = at + tag.size() < xml.size() ? xml[at + tag.size()] : '\0';
    if (next != '>' && next != ' ') continue;  // a longer name
    const auto begin = xml.find('>', at), end = xml.find('<', begin);
    if (end == std::string_view::npos) return {};
    return unescaped(xml.substr(begin + 1, end - begin - 1));
  }
  return {};
}

// "2026-11-22T23:35:31", of a clock in UTC.
std::optional<double> unix_seconds(const std::string& text) {
  std::tm time{};
  if (std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d", &time.tm_year, &time.tm_mon, &time.tm_mday,
                  &time.tm_hour, &time.tm_min, &time.tm_sec) != 6)
    return std::nullopt;
  time.tm_year -= 1900, time.tm_mon -= 1;
  return static_cast<double>(::timegm(&time));
}

GridEngineJob read_job(std::string_view element) {
  GridEngineJob job;
  job.number = number_in<i64>(text_of_element(element, "<JB_job_number")).value_or(0);
  job.name = text_of_element(element, "<full_job_name");
  job.state = text_of_element(element, "<state");
  const auto queue = text_of_element(element, "<queue_name");  // all.q@host
  if (const auto at = queue.find('@'); at != std::string::npos) job.host = queue.substr(at + 1);
  job.run_unix_s = unix_seconds(text_of_element(element, "<JAT_start_time"));
  if (const auto limit = number_in<i64>(text_of_element(element, "<hard_request name=\"h_rt\"")))
    job.limit_s = static_cast<double>(*limit);
  return job;
}

bool has(std::string_view state, std::string_view letters) {
  return state.find_first_of(letters) != std::string_view::npos;
}

JobStatus::Wait wait_of_state(std::string_view state) {
  return has(state, "Eh") ? JobStatus::Wait::kHopeless : JobStatus::Wait::kUsual;
}

std::string reason_of_state(const GridEngineJob& job) {
  if (has(job.state, "E"))
    return fmt::format("its start failed, and it stays in an error state; `qstat -j {}` says why",
                       job.number);
  if (has(job.state, "h")) return "it is on hold";
  return {};
}

// accounting(5), "failed": how the job failed before or after its script ran.
Blame blame_of_end(i64 failed, i64 exit_status) {
  constexpr i64 kLimitEnforced = 37, kEndedBySignal = 100;
  if (failed == kLimitEnforced || failed == kEndedBySignal) return Blame::kExternal;
  return failed == 0 && exit_status == 0 ? Blame::kNone : Blame::kMachine;
}

std::string_view next_line(std::string_view& rest) {
  const auto end = std::min(rest.find('\n'), rest.size());
  const auto line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

using AccountingEntry = std::map<std::string_view, std::string_view>;

JobStatus status_of_entry(const AccountingEntry& entry, const std::string& name) {
  const auto field = [&](std::string_view key) {
    const auto found = entry.find(key);
    return found == entry.end() ? std::string_view() : found->second;
  };
  const auto failed = field("failed");  // "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit"
  const i64 failure = number_in<i64>(failed.substr(0, failed.find(' '))).value_or(0);
  const i64 exit_status = number_in<i64>(field("exit_status")).value_or(0);
  JobStatus out;
  out.number = number_in<i64>(field("jobnumber")).value_or(0);
  out.name = name;
  out.phase = Phase::kEnded;
  out.blame = blame_of_end(failure, exit_status);
  out.state = fmt::format("exit status {}", exit_status);
  if (failure != 0) out.reason = trimmed(failed.substr(std::min(failed.find(':') + 1, failed.size())));
  out.nodes = field("hostname");
  return out;
}

}  // namespace

std::vector<std::string> qstat_of_user(const std::string& user) {
  return {"env", "TZ=UTC", "qstat", "-xml", "-r", "-s", "prsz", "-u", user};
}

Expected<std::vector<GridEngineJob>> read_qstat(std::string_view xml) {
  if (xml.find("</job_info>") == std::string_view::npos) return fail("qstat gave no XML of jobs");
  std::vector<GridEngineJob> out;
  for (auto at = xml.find(kJobBegin); at != std::string_view::npos; at = xml.find(kJobBegin, at + 1)) {
    const auto end = xml.find(kJobEnd, at);
    if (end == std::string_view::npos) return fail("the XML of qstat ends within a job");
    auto job = read_job(xml.substr(at, end - at));
    if (job.number > 0) out.push_back(std::move(job));
  }
  return out;
}

// The letters of qstat(1). E: error, R: started again, P: preempted, S and T: suspended by the queue or by
// its load, d: being deleted, h: on hold, q and w: waits in the queue, r: runs, s: suspended, t: about to
// run, z: finished.
Phase phase_of(std::string_view state) {
  if (has(state, "z")) return Phase::kEnded;
  if (has(state, "d")) return Phase::kEnding;
  if (has(state, "qw")) return Phase::kPending;
  if (has(state, "sSTP")) return Phase::kSuspended;
  return has(state, "rt") ? Phase::kRunning : Phase::kUnknown;
}

JobStatus status_of(const GridEngineJob& job, double now_unix_s) {
  JobStatus out;
  out.number = job.number;
  out.name = job.name;
  out.phase = phase_of(job.state);
  out.blame = out.phase == Phase::kEnded ? Blame::kExternal : Blame::kNone;  // the accounting may know more
  out.state = job.state;
  out.reason = reason_of_state(job);
  out.wait = wait_of_state(job.state);
  out.nodes = job.host;
  if (job.limit_s && job.run_unix_s && out.phase == Phase::kRunning)
    out.seconds_left = *job.limit_s - (now_unix_s - *job.run_unix_s);
  return out;
}

// Lines "name   value", an entry for each start of a job. The last one of this name counts: numbers are given again.
std::optional<JobStatus> read_qacct(std::string_view answer, const std::string& name) {
  std::optional<JobStatus> out;
  AccountingEntry entry;
  const auto conclude = [&] {
    if (const auto found = entry.find("jobname"); found != entry.end() && found->second == name)
      out = status_of_entry(entry, name);
    entry.clear();
  };
  while (!answer.empty()) {
    const auto line = next_line(answer);
    if (line.starts_with("====")) conclude();
    const auto space = line.find(' ');
    if (space != std::string_view::npos) entry[line.substr(0, space)] = trimmed(line.substr(space));
  }
  conclude();
  return out;
}

std::optional<i64> read_qsub(std::string_view answer) {
  std::optional<i64> out;
  while (!answer.empty())  // a site's own checks may print lines before it
    if (const auto number = number_in<i64>(trimmed(next_line(answer))); number && *number > 0) out = number;
  return out;
}

bool is_master_away(std::string_view error) {
  for (const std::string_view known :
       {"commlib error", "unable to send message to qmaster", "unable to contact qmaster", "got send timeout",
        "failed receiving gdi"})
    if (error.find(known) != std::string_view::npos) return true;
  return false;
}

std::string gridengine_reason(std::string_view error) {
  constexpr std::string_view kUnable = "Unable to run job: ", kError = "error: ";
  std::string out;
  while (!error.empty()) {
    auto line = trimmed(next_line(error));
    for (const auto prefix : {kUnable, kError})
      if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    if (line.empty() || line == "Exiting.") continue;
    out += fmt::format("{}{}", out.empty() ? "" : "; ", line);
  }
  return out;
}

bool is_unknown_job(std::string_view error) {
  return error.find("jobs do not exist") != std::string_view::npos ||
         error.find("does not exist") != std::string_view::npos;
}

}  // namespace sweep::launch
