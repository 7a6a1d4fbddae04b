// Which hosts a trial's nodes can have, over one kind of node or several.
#include "orchestrator/launch/ssh/ssh_options.h"

#include <gtest/gtest.h>

namespace sweep::launch {
namespace {

SshHost host(const std::string& name, const std::string& hardware) {
  SshHost out;
  out.name = name, out.hardware = hardware;
  return out;
}

TEST(SshOptions, AMixTakesEachNodeFromHostsThatStateItsKind) {
  const auto a = host("one", "a"), b = host("two", "b"), any = host("three", "");
  EXPECT_TRUE(serves(a, "a+b", 0));
  EXPECT_FALSE(serves(a, "a+b", 1));
  EXPECT_TRUE(serves(b, "a+b", 3));
  EXPECT_FALSE(serves(any, "a+b", 0)) << "what it has is not known";
  EXPECT_TRUE(serves(any, "a", 0));
  EXPECT_FALSE(serves(b, "a", 0));
}

TEST(SshOptions, AMixHasAsManyHostsAsTheRarestKindAllows) {
  const std::vector<SshHost> hosts{host("1", "a"), host("2", "a"), host("3", "a"), host("4", "b"),
                                   host("5", "")};
  EXPECT_EQ(usable_hosts(hosts, "a"), 4);
  EXPECT_EQ(usable_hosts(hosts, "b"), 2);
  EXPECT_EQ(usable_hosts(hosts, "a+b"), 2);
  EXPECT_EQ(usable_hosts(hosts, "a+c"), 0);
}

}  // namespace
}  // namespace sweep::launch
