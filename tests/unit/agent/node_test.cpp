// The agent reads its machine: OOM kills, facts, load.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <set>
#include <thread>

#include "worker/agent/evidence/node_probe.h"
#include "worker/agent/evidence/node_watch.h"
#include "worker/agent/evidence/oom_watch.h"
#include "worker/agent/evidence/proc_facts.h"

namespace sweep::agent {
namespace {

using namespace std::chrono_literals;

TEST(OomWatch, RecognisesTheKernelsOwnSentences) {
  EXPECT_EQ(oom_victim("6,339,51,-;Out of memory: Killed process 4711 (sweep-rank) total-vm:1kB"), 4711);
  EXPECT_EQ(oom_victim("3,1,2,-;Memory cgroup out of memory: Killed process 12 (a) total-vm:3kB"), 12);
  EXPECT_EQ(oom_victim("6,1,2,-;a user wrote: Killed process 12 (a), Out of memory"), 0);
  EXPECT_EQ(oom_victim("6,1,2,-;usb 1-1: new device"), 0);
}

TEST(OomWatch, FindsTheCountersOfBothCgroupVersions) {
  char folder[] = "/tmp/sweep-cgroup-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::filesystem::path root(folder);
  std::filesystem::create_directories(root / "memory/job/7");
  std::filesystem::create_directories(root / "slice");
  std::ofstream(root / "memory/job/7/memory.oom_control") << "oom_kill 1\n";
  std::ofstream(root / "slice/memory.events") << "oom_kill 1\n";
  const auto found = oom_counters("4:cpu,memory:/job/7\n0::/slice/hidden\nno colons\n", root);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], root / "memory/job/7/memory.oom_control");
  EXPECT_EQ(found[1], root / "slice/memory.events");  // the nearest that is visible
  std::filesystem::remove_all(root);
}

TEST(NodeProbe, NamesTheMachine) {
  const NodeRecord node = probe_node(nullptr);
  EXPECT_FALSE(node.host.empty());
  EXPECT_FALSE(node.facts.kernel.empty());
  EXPECT_GE(node.facts.cores.value_or(0), 1);
  EXPECT_FALSE(node.facts.gpus);
}

TEST(Nvml, AbsentLibraryIsNoGpu) {
  EXPECT_EQ(Nvml::load("libnvidia-ml-that-is-not-there.so"), nullptr);
}

TEST(Nvml, NamesOnlyReasonsThatSlowDown) {
  EXPECT_EQ(throttle_names(0), "");
  EXPECT_EQ(throttle_names(0x1), "");  // idle
  EXPECT_EQ(throttle_names(0x4 | 0x40), "sw_power_cap+hw_thermal_slowdown");
}

TEST(NodeWatch, ASlotBeyondTheGpusThatAreThereIsRefused) {
  const NodeWatch watch(nullptr);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(watch.without_gpu({7}), "") << "no GPU: slots are CPU ranks";
  ::setenv("CUDA_VISIBLE_DEVICES", "4,6", 1);
  EXPECT_EQ(watch.without_gpu({0, 1}), "");
  const auto why = watch.without_gpu({1, 2});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_NE(why.find("slot 3 needs a GPU of its own, but this node has only 2"), std::string::npos) << why;
}

// Waits until the process has used so much more CPU time, on a busy machine too. False when that takes five minutes.
bool wait_for_cpu_time(pid_t pid, std::chrono::milliseconds more) {
  clockid_t clock;
  if (::clock_getcpuclockid(pid, &clock) != 0) return false;
  const auto used = [clock] {
    timespec now{};
    ::clock_gettime(clock, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto enough = used() + more;
  const auto end = std::chrono::steady_clock::now() + 5min;
  while (used() < enough && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  return used() >= enough;
}

TEST(NodeWatch, UtilisationOfABusyProcessIsSampledOnlyWhileMeasuring) {
  const pid_t busy = ::fork();
  if (busy == 0)
    while (::getppid() != 0) {
    }
  NodeWatch watch(nullptr);
  auto span = watch.begin({0}, /*on_gpu=*/false);
  AttemptEnd before, after;
  span.sample({busy}, false);
  span.report(before);
  EXPECT_FALSE(before.util_mean);
  for (int i = 0; i < 3; ++i) {
    span.sample({busy}, true);
    ASSERT_TRUE(wait_for_cpu_time(busy, 100ms)) << "the process got no CPU time";
  }
  span.sample({busy}, true);
  span.report(after);
  ::kill(busy, SIGKILL);
  ::waitpid(busy, nullptr, 0);
  ASSERT_TRUE(after.util_mean);
  EXPECT_GT(*after.util_mean, 0);
  EXPECT_LT(*after.util_mean, 130);
  EXPECT_TRUE(after.util_sd);
  EXPECT_FALSE(after.power_mean_w);
  ASSERT_EQ(after.load.nodes.size(), 1u) << "the load over time has what was before measuring, too";
  ASSERT_FALSE(after.load.nodes[0].memory_bytes.empty());
  EXPECT_GT(after.load.nodes[0].memory_bytes.at(0), 0);
  EXPECT_TRUE(after.load.nodes[0].power_w.empty());
}

TEST(NodeWatch, TheLoadOfACommandIsNotThatOfTheProcessThatWaitsForIt) {
  NodeWatch watch(nullptr);
  auto span = watch.begin({0}, /*on_gpu=*/false, /*runs_command=*/true);
  for (int i = 0; i < 3; ++i) {
    span.sample({::getpid()}, true);
  }
  AttemptEnd end;
  span.report(end);
  EXPECT_FALSE(end.util_mean);
  EXPECT_TRUE(end.load.nodes.empty());
}

TEST(NodeWatch, SlotsHaveGpusOfTheirOwnAmongThoseThatAreVisible) {
  const NodeWatch watch(nullptr);
  ::setenv("CUDA_VISIBLE_DEVICES", "4,GPU-1b2c,7", 1);
  EXPECT_EQ(watch.devices_of({1, 2}), "GPU-1b2c,7");
  EXPECT_EQ(watch.devices_of({0}), "4");
  EXPECT_EQ(watch.devices_of({2, 3}), "");  // there is no fourth
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(watch.devices_of({0}), "");
}

TEST(NodeWatch, SlotsHaveCoresOfTheirOwn) {
  const i64 cores = std::thread::hardware_concurrency();
  std::set<std::string> seen;
  for (i64 slot = 0; slot < cores; ++slot) seen.insert(cores_of_slot(slot, cores));
  EXPECT_EQ(static_cast<i64>(seen.size()), cores);
  EXPECT_FALSE(seen.contains(""));
  const auto all = cores_of_slot(0, 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), ',') + 1, cores);
  EXPECT_EQ(cores_of_slot(0, 1 << 20), "");  // fewer cores than slots
  EXPECT_EQ(cores_of_slot(cores, cores), "");
}

TEST(ProcFacts, FindsChildrenAndSaysWhereTheyAre) {
  const pid_t child = ::fork();
  if (child == 0)
    while (true) ::pause();
  bool found = false;
  for (const auto& one : children()) found = found || one.pid == child;
  EXPECT_TRUE(found);
  const auto place = where_it_is(child);
  ASSERT_TRUE(place);
  EXPECT_FALSE(place->state.empty());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(NodeProbe, InASlurmJobTheNameIsTheOneThatSlurmKnows) {
  ::setenv("SLURMD_NODENAME", "n7", 1);
  EXPECT_EQ(probe_node(nullptr).host, "n7");
  ::unsetenv("SLURMD_NODENAME");
  EXPECT_NE(probe_node(nullptr).host, "n7");
}

}  // namespace
}  // namespace sweep::agent
