// Hardware profiles in a database, and a database of the version before them.
#include "orchestrator/store/profile_shelf.h"

#include "store_fixture.h"

namespace sweep::store {
namespace {

class ProfileShelfTest : public StoreTest {
 protected:
  void before_profiles() {
    store_ = open();
    store_.reset();
    sql("DROP TABLE hardware_profile; ALTER TABLE event DROP COLUMN attempt; PRAGMA user_version = 6");
  }
};

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
}

TEST_F(ProfileShelfTest, AFileOfTheVersionBeforeHasNoneAndIsUpgradedWhenWritten) {
  before_profiles();
  EXPECT_TRUE(must(open(quick(), Mode::kReadOnly)->hardware_profiles()).empty());
  store_ = open();
  EXPECT_TRUE(must(store_->hardware_profiles()).empty());
  must(store_->save_hardware_profile({"lab", "cpu", 0, "{}"}));
  EXPECT_EQ(must(store_->hardware_profiles()).size(), 1u);
}

}  // namespace
}  // namespace sweep::store
