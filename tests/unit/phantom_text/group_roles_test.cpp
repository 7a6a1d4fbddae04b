// Which started rank does whose part in a communicator.
#include "worker/phantom/group_roles.h"

#include <gtest/gtest.h>

namespace sweep::phantom {
namespace {

TEST(GroupRoles, EachStartedRankDoesThePartOfItsStage) {
  const GroupRoles world({0, 0, 0, 3, 3, 3});
  EXPECT_EQ(world.ranks(), 6);
  EXPECT_EQ(world.started(), 2);
  EXPECT_EQ(world.place(2), 0);
  EXPECT_EQ(world.place(5), 1);
  EXPECT_EQ(world.rank_at(1), 3);
  EXPECT_TRUE(world.has_started(3));
  EXPECT_FALSE(world.has_started(4));
  EXPECT_FALSE(world.is_stray(4));
}

TEST(GroupRoles, NobodyDoesThePartOfAStray) {
  const GroupRoles mixed({GroupRoles::kNobody, 1, GroupRoles::kNobody});
  EXPECT_EQ(mixed.started(), 1);
  EXPECT_TRUE(mixed.is_stray(0));
  EXPECT_FALSE(mixed.is_stray(1));
  EXPECT_EQ(mixed.rank_at(mixed.place(2)), 1);  // in collectives the first started rank does
  EXPECT_FALSE(mixed.has_started(2));
}

TEST(GroupRoles, AllOrOne) {
  EXPECT_EQ(GroupRoles::all_started(4).started(), 4);
  const GroupRoles alone = GroupRoles::alone(4, 2);
  EXPECT_EQ(alone.started(), 1);
  EXPECT_EQ(alone.rank_at(0), 2);
  EXPECT_FALSE(alone.is_stray(0));
  EXPECT_EQ(GroupRoles({}).ranks(), 0);
}

}  // namespace
}  // namespace sweep::phantom
