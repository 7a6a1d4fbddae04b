#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "tests/support/must.h"

namespace sweep {
namespace {

// The standard output of a program, and how it ended.
struct Ran {
  std::string out;
  ProcessEnd end;
};

std::string read_all(int fd) {
  std::string out;
  char buffer[256];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<std::size_t>(n));
  return out;
}

Ran run(ChildProgram wanted) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  wanted.out = ends[1];
  const auto pid = start_program(wanted);
  ::close(ends[1]);
  EXPECT_TRUE(pid) << pid.error().message;
  Ran ran{read_all(ends[0]), pid ? wait_for(*pid) : ProcessEnd()};
  ::close(ends[0]);
  return ran;
}

Ran run_shell(const std::string& text) {
  return run({{"sh", "-c", text}});
}

TEST(Process, CodeAndSignalOfItsEnd) {
  EXPECT_EQ(run_shell("exit 3").end.code, 3);
  const auto killed = run_shell("kill -KILL $$").end;
  EXPECT_EQ(killed.code, -1);
  EXPECT_EQ(killed.signal, SIGKILL);
}

TEST(Process, WordsArriveAsTheyAre) {
  EXPECT_EQ(run({{"printf", "%s|", "a b", "$(id)", "*", ""}}).out, "a b|$(id)|*||");
}

TEST(Process, WhatCannotBeStartedIsAnErrorAndLeavesNoProcess) {
  EXPECT_FALSE(start_program({{"no-such-program-anywhere"}}));
  EXPECT_FALSE(start_program({{"/no/such/program"}}));
  EXPECT_FALSE(start_program({{"/dev/null"}}));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(Process, ProgramAndFirstWordMayDiffer) {
  ChildProgram wanted{{"another name", "-c", "echo $0"}};
  wanted.program = "/bin/sh";
  EXPECT_EQ(run(wanted).out, "another name\n");
}

TEST(Process, EnvironmentIsOursOrTheOneGiven) {
  ::setenv("SWEEP_TEST_PROCESS", "ours", 1);
  ChildProgram wanted{{"sh", "-c", "echo $SWEEP_TEST_PROCESS"}};
  EXPECT_EQ(run(wanted).out, "ours\n");
  wanted.environment = {"SWEEP_TEST_PROCESS=given"};
  EXPECT_EQ(run(wanted).out, "given\n");
  wanted.environment = std::vector<std::string>();
  EXPECT_EQ(run(wanted).out, "\n");
  ::unsetenv("SWEEP_TEST_PROCESS");
}

TEST(Process, OnlyTheStreamsThatItIsGivenAreOpen) {
  const int open = ::dup(0);  // without O_CLOEXEC
  EXPECT_EQ(
      run_shell("for fd in 0 1 2 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$fd ] || printf '%s ' $fd; done").out,
      "0 1 2 ");
  ::close(open);
}

// Makes close_range() fail in this process and its children. False: this machine allows no such filter.
bool forbid_close_range(unsigned error) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof rules / sizeof *rules, rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// ENOSYS before Linux 5.9, EINVAL for its flag before 5.11.
TEST(Process, AKernelThatCannotCloseARangeStartsThemToo) {
  constexpr int kNoFilter = 77;
  constexpr const char* kCountOpen =
      "n=0; for fd in 0 1 2 3 4 5 6 7 8 9 50 290; do [ ! -e /proc/$$/fd/$fd ] || n=$((n+1)); done; exit $n";
  for (const int error : {ENOSYS, EINVAL}) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (!forbid_close_range(static_cast<unsigned>(error))) ::_exit(kNoFilter);
      for (int i = 0; i < 300; ++i) (void)::dup(0);  // more than one read of their list returns
      const auto pid = start_program({{"sh", "-c", kCountOpen}});
      ::_exit(pid ? wait_for(*pid).code : 1);
    }
    const int code = wait_for(child).code;
    if (code == kNoFilter) GTEST_SKIP() << "no seccomp filter can be set here";
    EXPECT_EQ(code, 3);  // standard input, output and error
  }
}

TEST(Process, ExtraStreamIsNumberThree) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::write(ends[1], "three", 5), 5);
  ::close(ends[1]);
  ChildProgram wanted{{"sh", "-c", "cat <&3"}};
  wanted.extra = ends[0];
  EXPECT_EQ(run(wanted).out, "three");
  ::close(ends[0]);
}

// The source of each is the target of the other.
TEST(Process, StreamsMayBeSwapped) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ChildProgram wanted{{"sh", "-c", "echo to-out; echo to-err >&2"}};
  int other[2];
  ASSERT_EQ(::pipe2(other, O_CLOEXEC), 0);
  const int kept_1 = ::dup(1), kept_2 = ::dup(2);
  ::dup2(ends[1], 2), ::dup2(other[1], 1);
  wanted.out = 2;
  wanted.err = 1;
  const auto pid = start_program(wanted);
  ::dup2(kept_1, 1), ::dup2(kept_2, 2);
  for (const int fd : {kept_1, kept_2, ends[1], other[1]}) ::close(fd);
  ASSERT_TRUE(pid);
  EXPECT_EQ(read_all(ends[0]), "to-out\n");
  EXPECT_EQ(read_all(other[0]), "to-err\n");
  wait_for(*pid);
  ::close(ends[0]), ::close(other[0]);
}

TEST(Process, StandardInputIsEmptyUnlessGiven) {
  EXPECT_EQ(run({{"cat"}}).out, "");
}

TEST(Process, SignalsThatWeIgnoreOrHoldBackActOnTheChild) {
  const auto before = ::signal(SIGTERM, SIG_IGN);
  sigset_t term, old;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &term, &old);
  EXPECT_EQ(run_shell("kill -TERM $$").end.signal, SIGTERM);
  ::sigprocmask(SIG_SETMASK, &old, nullptr);
  ::signal(SIGTERM, before);
}

std::string group_and_session(ChildProgram::Group group) {
  ChildProgram wanted{
      {"sh", "-c", "read -r all < /proc/$$/stat; set -- ${all##*) }; echo $(($3==$$)) $(($4==$$))"}};
  wanted.group = group;
  return run(wanted).out;
}

TEST(Process, GroupAndSession) {
  EXPECT_EQ(group_and_session(ChildProgram::Group::kOurs), "0 0\n");
  EXPECT_EQ(group_and_session(ChildProgram::Group::kNew), "1 0\n");
  EXPECT_EQ(group_and_session(ChildProgram::Group::kSession), "1 1\n");
}

TEST(Process, JoinsTheGroupOfAnotherChild) {
  ChildProgram first{{"sleep", "1000"}};
  first.group = ChildProgram::Group::kNew;
  const auto leader = must(start_program(first));
  ChildProgram second{{"sh", "-c", "read -r all < /proc/$$/stat; set -- ${all##*) }; echo $3"}};
  second.group = ChildProgram::Group::kJoin;
  second.leader = leader;
  EXPECT_EQ(run(second).out, std::to_string(leader) + "\n");
  ::kill(leader, SIGKILL);
  wait_for(leader);
}

TEST(Process, DiesWithUs) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t between = ::fork();
  if (between == 0) {
    ChildProgram wanted{{"sleep", "1000"}};
    wanted.out = ends[1];
    wanted.dies_with_us = true;
    ::_exit(start_program(wanted) ? 0 : 1);
  }
  ::close(ends[1]);
  EXPECT_EQ(wait_for(between).code, 0);
  pollfd gone{ends[0], POLLIN, 0};  // hangs up when the last process that has the other end is gone
  EXPECT_EQ(::poll(&gone, 1, 60'000), 1);
  ::close(ends[0]);
}

TEST(Process, DescriptorOfAProcessTellsOfItsEnd) {
  const auto pid = start_program({{"true"}});
  ASSERT_TRUE(pid);
  const Descriptor fd(open_pidfd(*pid));
  pollfd gone{fd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&gone, 1, 60'000), 1);
  EXPECT_EQ(wait_for(*pid).code, 0);
}

}  // namespace
}  // namespace sweep
