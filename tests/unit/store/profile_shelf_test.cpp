// Hardware profiles in a database.
#include "orchestrator/store/profile_shelf.h"

#include "store_fixture.h"

namespace sweep::store {
namespace {

class ProfileShelfTest : public StoreTest {};

TEST_F(ProfileShelfTest, KeepsTheLatestUnderEachName) {
  store_ = open();
  EXPECT_TRUE(must(store_->hardware_profiles()).empty());
  must(store_->save_hardware_profile({"lab", "cpu", 7, "{}"}));
  must(store_->save_hardware_profile({"cpu", "cpu", 0, "[]"}));
  must(store_->save_hardware_profile({"lab", "h100-sxm-80gb", 8, "{\"a\": 1}"}));
  const auto rows = must(store_->hardware_profiles());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "cpu");
  EXPECT_GT(rows[0].created_unix_ns, 0);
  EXPECT_EQ(rows[1].hardware, "h100-sxm-80gb");
  EXPECT_EQ(rows[1].created_unix_ns, 8);
  EXPECT_EQ(rows[1].profile, "{\"a\": 1}");
  EXPECT_TRUE(must(store_->remove_hardware_profile("lab")));
  EXPECT_FALSE(must(store_->remove_hardware_profile("lab")));
  EXPECT_EQ(must(store_->hardware_profiles()).size(), 1u);
}

}  // namespace
}  // namespace sweep::store
