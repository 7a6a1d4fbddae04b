// The message when ssh does not let people in: the cause, and the way out.
#include "orchestrator/launch/ssh/ssh_refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sweep::launch {
namespace {

using ::testing::HasSubstr;

TEST(SshRefusal, AChangedHostKeyIsNamedWithItsPlace) {
  const std::string said =
      "@@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
      "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\r\n"
      "Offending ED25519 key in /home/me/.ssh/known_hosts:3\r\n"
      "Host key verification failed.\r\n";
  EXPECT_EQ(ssh_refusal_of(said), SshRefusal::kHostKeyChanged);
  const auto why = why_ssh_failed("gpu1", said);
  EXPECT_THAT(why, HasSubstr("/home/me/.ssh/known_hosts:3"));
  EXPECT_EQ(why.find('\n'), std::string::npos);
  EXPECT_EQ(why.find('\r'), std::string::npos);
}

TEST(SshRefusal, IsKnownByWhatSshPrints) {
  EXPECT_EQ(ssh_refusal_of("No ED25519 host key is known for gpu1 and you have requested strict checking.\n"
                           "Host key verification failed.\n"),
            SshRefusal::kHostKeyUnknown);
  EXPECT_EQ(ssh_refusal_of("me@gpu1: Permission denied (publickey).\n"), SshRefusal::kLoginRefused);
  EXPECT_EQ(ssh_refusal_of("kex_exchange_identification: Connection closed by remote host\r\n"
                           "Connection closed by UNKNOWN port 65535\r\n"),
            SshRefusal::kNoWayThroughProxy);
  EXPECT_EQ(ssh_refusal_of("ssh: connect to host gpu1 port 22: Connection refused\n"), SshRefusal::kOther);
}

TEST(SshRefusal, NamesTheCommandThatMustWork) {
  EXPECT_THAT(why_ssh_failed("-F /me/config gpu1", "me@gpu1: Permission denied (publickey).\n"),
              HasSubstr("`ssh -o BatchMode=yes -F /me/config gpu1 true`"));
}

TEST(SshRefusal, AnythingElseIsSaidAsSshSaysIt) {
  EXPECT_EQ(why_ssh_failed("gpu1", "debug\nssh: connect to host gpu1 port 22: Connection refused\n"),
            "ssh: connect to host gpu1 port 22: Connection refused");
  EXPECT_EQ(why_ssh_failed("gpu1", ""), "ssh ended without a word");
}

}  // namespace
}  // namespace sweep::launch
