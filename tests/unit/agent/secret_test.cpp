// The token and its proofs: only who knows it answers right, and no answer serves twice or the other way
// round.
#include "worker/agent/net/secret.h"

#include <gtest/gtest.h>

namespace sweep::agent {
namespace {

TEST(Secret, ProvesItselfToWhoKnowsIt) {
  const Secret head = Secret::random();
  const auto node = Secret::from_hex(head.hex());
  ASSERT_TRUE(node);
  const std::string theirs = new_challenge(), ours = new_challenge();
  EXPECT_TRUE(head.proven("node", theirs, ours, node->proof("node", theirs, ours)));
}

TEST(Secret, NothingElseIsAProof) {
  const Secret head = Secret::random(), other = Secret::random();
  const std::string theirs = new_challenge(), ours = new_challenge();
  const std::string right = head.proof("node", theirs, ours);
  EXPECT_FALSE(head.proven("node", theirs, ours, other.proof("node", theirs, ours)));
  EXPECT_FALSE(head.proven("head", theirs, ours, right));           // reflected
  EXPECT_FALSE(head.proven("node", new_challenge(), ours, right));  // said again later
  EXPECT_FALSE(head.proven("node", theirs, ours, right.substr(1)));
  EXPECT_FALSE(head.proven("node", theirs, ours, ""));
}

TEST(Secret, IsReadOnlyFromItsWholeText) {
  const std::string hex = Secret::random().hex();
  EXPECT_EQ(hex.size(), 64u);
  EXPECT_NE(hex, Secret::random().hex());
  for (const std::string& wrong : {hex.substr(1), hex + "0", hex.substr(0, 63) + "g", std::string()})
    EXPECT_FALSE(Secret::from_hex(wrong)) << wrong;
}

}  // namespace
}  // namespace sweep::agent
