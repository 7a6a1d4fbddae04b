// What people are told when ssh does not let them in: the cause, and the way out.
#include "orchestrator/launch/ssh/ssh_refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sweep::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SshRefusal, AChangedHostKeyIsNamedWithItsPlace) {
  const auto why =
      why_ssh_failed("gpu1",
                     "@@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
                     "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\r\n"
                     "Offending ED25519 key in /home/me/.ssh/known_hosts:3\r\n"
                     "Host key verification failed.\r\n");
  EXPECT_THAT(why, AllOf(HasSubstr("/home/me/.ssh/known_hosts:3"), HasSubstr("ssh-keygen -R"),
                         HasSubstr("another machine")));
  EXPECT_EQ(why.find('\n'), std::string::npos);
  EXPECT_EQ(why.find('\r'), std::string::npos);
}

TEST(SshRefusal, AnUnknownHostKeyAndARefusedLoginNameTheWayOut) {
  EXPECT_THAT(why_ssh_failed("gpu1",
                             "No ED25519 host key is known for gpu1 and you have requested strict checking.\n"
                             "Host key verification failed.\n"),
              AllOf(HasSubstr("not known"), HasSubstr("`ssh gpu1`")));
  EXPECT_THAT(why_ssh_failed("gpu1", "me@gpu1: Permission denied (publickey).\n"),
              AllOf(HasSubstr("(publickey)"), HasSubstr("BatchMode=yes gpu1 true")));
}

TEST(SshRefusal, AJumpHostThatRefusesForwardingIsNamed) {
  EXPECT_THAT(why_ssh_failed("-F /me/config gpu1",
                             "kex_exchange_identification: Connection closed by remote host\r\n"
                             "Connection closed by UNKNOWN port 65535\r\n"),
              AllOf(HasSubstr("jump host"), HasSubstr("`ssh -o BatchMode=yes -F /me/config gpu1 true`")));
}

TEST(SshRefusal, AnythingElseIsSaidAsSshSaysIt) {
  EXPECT_EQ(why_ssh_failed("gpu1", "debug\nssh: connect to host gpu1 port 22: Connection refused\n"),
            "ssh: connect to host gpu1 port 22: Connection refused");
  EXPECT_EQ(why_ssh_failed("gpu1", ""), "ssh ended without a word");
}

}  // namespace
}  // namespace sweep::launch
