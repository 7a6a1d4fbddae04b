// Tests of what only the kernel can do to a rank: an OOM kill, and a process that survives SIGKILL. Both need
// root and cgroups.
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/local_fixture.h"

namespace sweep::launch {
namespace {

namespace fs = std::filesystem;

// A cgroup of our own below `parent`; gone with the object.
class Cgroup {
 public:
  explicit Cgroup(const fs::path& parent) : dir_(parent / ("sweep_test_" + std::to_string(::getpid()))) {
    std::error_code ec;
    made_ = fs::exists(parent / "cgroup.procs", ec) && fs::create_directory(dir_, ec);
  }
  ~Cgroup() {
    std::error_code ec;
    for (int i = 0; made_ && i < 500 && !fs::remove(dir_, ec); ++i)
      ::usleep(10'000);  // busy until its last process ended
  }
  bool set(const char* file, const std::string& value) const {
    std::ofstream out(dir_ / file);
    out << value << std::flush;
    return made_ && out.good();
  }
  bool add(pid_t pid) const { return set("cgroup.procs", std::to_string(pid)); }

 private:
  fs::path dir_;
  bool made_ = false;
};

class Kernel : public LocalFixture {};

TEST_F(Kernel, HostOomKillIsToldFromAnyOtherSigkill) {
  const Cgroup v1("/sys/fs/cgroup/memory"), v2("/sys/fs/cgroup");
  const std::string limit = std::to_string(96 << 20);
  const bool limited = v1.set("memory.limit_in_bytes", limit) || v2.set("memory.max", limit);
  if (!limited) GTEST_SKIP() << "no memory cgroup can be made here (needs root)";
  (void)v2.set("memory.swap.max", "0");
  options_.allow_zygote = false;
  begin();
  ASSERT_TRUE(run_until([&] { return !said(spool::kHello).empty(); }));
  for (const auto& process : marked_processes(key()))  // ranks inherit it
    ASSERT_TRUE(v1.add(process.pid) || v2.add(process.pid));
  post(attempt(1, 2, {{"outcome", "host_oom"}, {"rank", 1}, {"bytes", 512 << 20}}));
  ASSERT_TRUE(run_until([&] { return has_ended(1); }));
  EXPECT_EQ(end_of(1).cause, EndCause::kRankFailed);
  ASSERT_EQ(exits_of(1).size(), 2u);
  EXPECT_EQ(exits_of(1)[1].signal, SIGKILL);
  EXPECT_TRUE(exits_of(1)[1].oom_killed);
  EXPECT_FALSE(exits_of(1)[1].killed_by_agent);
  EXPECT_FALSE(exits_of(1)[0].oom_killed);
  launcher_.reset();
}

class Survivor : public LocalFixture, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Namespace, Survivor, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "with" : "without"; });

TEST_P(Survivor, OfSigkillTaintsTheNodeWhichGetsNoMoreWork) {
  const Cgroup freezer("/sys/fs/cgroup/freezer");
  if (!freezer.set("freezer.state", "THAWED"))
    GTEST_SKIP() << "no cgroup v1 freezer here: only it holds a process against SIGKILL";
  options_.allow_namespace = GetParam();
  begin(1);
  Attempt hanging = attempt(1, 1, {{"outcome", "hang"}});
  hanging.deadlines.first_step_s = hanging.deadlines.step_s = 3;
  post(hanging);
  post(attempt(2, 1, {{"outcome", "ok"}}));
  ASSERT_TRUE(run_until([&] { return has_started(1); }));
  ASSERT_TRUE(freezer.add(pids_of(1).at(0)));
  ASSERT_TRUE(freezer.set("freezer.state", "FROZEN"));
  EXPECT_TRUE(run_until_ended_by("node unclean"));
  EXPECT_TRUE(freezer.set("freezer.state", "THAWED"));
  EXPECT_FALSE(end_of(1).clean);
  EXPECT_NE(end_of(1).cleanup_failure.find("survived SIGKILL: fake_rank"), std::string::npos)
      << end_of(1).cleanup_failure;
  EXPECT_FALSE(has_started(2));
  EXPECT_TRUE(run_until([&] { return marked_processes(key()).empty(); }));
}

}  // namespace
}  // namespace sweep::launch
