// The words that start an agent.
#include "schema/agent_call.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace sweep {
namespace {

AgentCall small() {
  AgentCall call;
  call.spool = "/s p", call.allocation = "a1", call.rank_program = "/bin/rank";
  return call;
}

std::string said(const AgentCall& call) {
  return fmt::format("{}", fmt::join(agent_words(call), "|"));
}

TEST(AgentCall, SaysOnlyWhatIsAsked) {
  EXPECT_EQ(said(small()),
            "run|--spool|/s p|--allocation|a1|--incarnation|1|--slots|1|--rank-program|/bin/rank");
}

TEST(AgentCall, WithoutARankProgramItNamesNone) {
  AgentCall call = small();
  call.rank_program.clear();
  EXPECT_EQ(said(call), "run|--spool|/s p|--allocation|a1|--incarnation|1|--slots|1");
}

TEST(AgentCall, AHeadAgentTellsOfItsNodes) {
  AgentCall call = small();
  call.nodes = 4, call.peers = "slurm", call.lease_s = 15, call.idle_limit_s = 300, call.interface = "ib0";
  EXPECT_EQ(
      said(call),
      "run|--spool|/s p|--allocation|a1|--incarnation|1|--slots|1|--rank-program|/bin/rank|--idle-limit|300|"
      "--nodes|4|--peers|slurm|--lease|15|--interface|ib0");
}

TEST(AgentCall, EveryFlagIsAWordOfItsOwn) {
  AgentCall call = small();
  call.join = call.detach = call.bind = true, call.zygote = call.pid_namespace = false, call.parent_pid = 7;
  call.contact_limit_s = 0.5;
  EXPECT_EQ(
      said(call),
      "run|--detach|--join|--spool|/s p|--allocation|a1|--incarnation|1|--slots|1|--rank-program|/bin/rank|"
      "--parent-pid|7|--contact-limit|0.5|--bind|--no-zygote|--no-namespace");
}

}  // namespace
}  // namespace sweep
