#include "runtime/rank_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "base/proc.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep {
namespace {

tl::unexpected<Error> failed(const std::string& what) {
  return fail(what + ": " + std::strerror(errno));
}

constexpr auto kAdoption =
    std::chrono::seconds(5);  // time from the death of the parent in between until the agent adopts

}  // namespace

Expected<void> join_process_group(i64 pgid) {
  if (setpgid(0, static_cast<pid_t>(pgid)) == 0) return {};
  return failed("cannot join process group " + std::to_string(pgid));
}

Expected<void> follow_agent(i64 agent_pid) {
  if (agent_pid == 0) return {};
  const auto agent = static_cast<pid_t>(agent_pid);
  const auto deadline = std::chrono::steady_clock::now() + kAdoption;
  while (getppid() != agent && std::chrono::steady_clock::now() < deadline) sched_yield();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return failed("cannot set PDEATHSIG");
  // The agent may have died before the line above: then nothing would ever end this process.
  if (getppid() == agent) return {};
  return fail("the agent (pid " + std::to_string(agent_pid) +
              ") is not the parent of this rank; its parent is pid " + std::to_string(getppid()));
}

Expected<void> redirect_output(const RankLaunch& launch) {
  const auto path = spool::rank_log(launch.attempt_dir, launch.rank);
  const int log = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return failed("cannot open the rank's log file " + path.string());
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const bool done = nothing >= 0 && dup2(nothing, 0) == 0 && dup2(log, 1) == 1 && dup2(log, 2) == 2;
  close(log);
  if (nothing > 2) close(nothing);
  if (!done) return failed("cannot redirect output to " + path.string());
  setvbuf(stdout, nullptr, _IOLBF, 0);  // the agent reads the log while the rank runs
  return {};
}

Expected<void> keep_to_place(const RankLaunch& launch) {
  if (!launch.devices.empty() && setenv("CUDA_VISIBLE_DEVICES", launch.devices.c_str(), 1) != 0)
    return fail(std::string("cannot set CUDA_VISIBLE_DEVICES: ") + std::strerror(errno));
  // Numbers GPUs like NVML: CUDA's own order would be by speed.
  if (setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) != 0)
    return fail(std::string("cannot set CUDA_DEVICE_ORDER: ") + std::strerror(errno));
  if (launch.cores.empty()) return {};
  cpu_set_t own;
  CPU_ZERO(&own);
  std::istringstream numbers(launch.cores);
  for (std::string number; std::getline(numbers, number, ',');) {
    const int core = std::atoi(number.c_str());
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(core), &own);
  }
  if (sched_setaffinity(0, sizeof own, &own) == 0) return {};
  return fail("cannot keep to the cores " + launch.cores + ": " + std::strerror(errno));
}

void set_process_name(i64 rank) {
  char name[16];
  std::snprintf(name, sizeof(name), "sweep-rank-%d", static_cast<int>(rank));
  prctl(PR_SET_NAME, name);
}

Expected<void> become_rank(const RankLaunch& launch) {
  set_process_name(launch.rank);
  SWEEP_TRY(join_process_group(launch.pgid));
  SWEEP_TRY(follow_agent(launch.agent_pid));
  SWEEP_TRY(redirect_output(launch));
  return keep_to_place(launch);
}

Expected<Attempt> read_attempt(const RankLaunch& launch) {
  auto attempt = files::read_existing(launch.attempt_file)
                     .and_then([](const std::string& bytes) { return parse_json(bytes); })
                     .and_then([](const nlohmann::json& json) { return from_json<Attempt>(json); });
  if (!attempt) return fail("cannot read " + launch.attempt_file + ": " + attempt.error().message);
  return attempt;
}

i64 usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return CPU_COUNT(&set);
}

i64 threads_of(const Trial& trial, i64 cores) {
  const bool updates_on_host = trial.hardware != "cpu" && trial.offload != Offload::kNone;
  if (trial.threads > 1 || !updates_on_host) return trial.threads;
  return std::max<i64>(1, cores / trial.gpus_per_node);
}

i64 age_ns() {
  const auto stat = proc::stat_of("self");
  if (!stat) return 0;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const i64 tick_ns = 1'000'000'000 / sysconf(_SC_CLK_TCK);
  return i64{now.tv_sec} * 1'000'000'000 + now.tv_nsec - stat->start_ticks * tick_ns;
}

i64 cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) { return i64{t.tv_sec} * 1'000'000'000 + i64{t.tv_usec} * 1000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

i64 host_peak_rss_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    long kib = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %ld kB", &kib) == 1) return i64{kib} * 1024;
  }
  return 0;
}

}  // namespace sweep
