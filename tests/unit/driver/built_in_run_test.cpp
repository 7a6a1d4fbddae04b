// The launch section of a grid, read for itself: for selftest, doctor and calibrate.
#include "orchestrator/driver/built_in_run.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace sweep::driver {
namespace {

class BuiltInRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("SLURM_JOB_ID");
    ::setenv("SWEEP_SITE", "/nonexistent/site.yaml", 1);
  }
  void TearDown() override { ::unsetenv("SWEEP_SITE"); }
  // The launcher that a grid with this text names; empty: an error.
  std::string named_by(const std::string& text) const {
    std::ofstream(dir_ / "grid.yaml") << text;
    SelfTestRequest request;
    request.grid = (dir_ / "grid.yaml").string();
    const auto place = place_of(request);
    EXPECT_TRUE(place) << place.error().message;
    return place ? place->choice.on : "";
  }
  const TemporaryFolder dir_;
};

TEST_F(BuiltInRunTest, AGridMayNameABuiltInRecipe) {
  EXPECT_EQ(named_by("name: t\nmodel: llama3-8b\nworkload: torchtitan\nbase: {dp: 1}\nlaunch: {slurm: "
                     "{partition: p}}\n"),
            "slurm");
}

TEST_F(BuiltInRunTest, AGridMayHaveAnyNumberOfPoints) {
  EXPECT_EQ(named_by("name: t\nmodel: llama3-8b\nlaunch: {slurm: {partition: p}}\ngrid: {seq_len: {range: "
                     "[1, 65536, 1]},"
                     " global_batch_size: {range: [1, 65536, 1]}}\n"),
            "slurm");
}

TEST_F(BuiltInRunTest, WithoutAGridItIsThisMachine) {
  EXPECT_EQ(place_of({})->choice.on, "local");
}

}  // namespace
}  // namespace sweep::driver
