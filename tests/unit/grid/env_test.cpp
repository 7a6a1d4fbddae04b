// The axis `env`: maps and texts become one text; what is wrong is refused with its place.
#include <gmock/gmock.h>

#include "grid_text.h"

namespace sweep::grid {
namespace {

using ::testing::AllOf;

Expected<Grid> with_env(const std::string& env) {
  return read_text("name: t\nmodel: gpt2\ngrid:\n  env: " + env + "\n", "g.yaml");
}

std::vector<std::string> texts(const std::string& env) {
  const auto grid = with_env(env);
  EXPECT_TRUE(grid) << (grid ? "" : grid.error().message);
  std::vector<std::string> out;
  if (!grid) return out;
  EXPECT_TRUE(expand(
      *grid, [&](PlanEntry&& e) { return out.push_back(e.trial.env), true; }, 0));
  return out;
}

TEST(GridRead, EnvTakesMapsAndTheirText) {
  EXPECT_EQ(texts("[{}, {NCCL_PROTO: LL, NCCL_ALGO: Ring}, NCCL_ALGO=Tree]"),
            (std::vector<std::string>{"", "NCCL_ALGO=Ring NCCL_PROTO=LL", "NCCL_ALGO=Tree"}));
  EXPECT_EQ(texts("{CUDA_DEVICE_MAX_CONNECTIONS: 1}"),
            std::vector<std::string>{"CUDA_DEVICE_MAX_CONNECTIONS=1"});
  EXPECT_EQ(texts("\"NCCL_PROTO=LL NCCL_ALGO=Ring\""),
            std::vector<std::string>{"NCCL_ALGO=Ring NCCL_PROTO=LL"});
}

TEST(GridRead, EnvRefusesWhatSweepSetsWithItsPlace) {
  const auto refused = [](const std::string& env) {
    const auto grid = with_env(env);
    EXPECT_FALSE(grid) << env;
    return grid ? Error{} : grid.error();
  };
  EXPECT_THAT(refused("[{A: 1}, {LD_PRELOAD: x.so}]"),
              AllOf(At(4, 18), IsError(ErrorKind::kInvalidValue, "LD_PRELOAD")));
  EXPECT_THAT(refused("[{A: \"1 B=2\"}]"), AllOf(At(4, 13), IsError(ErrorKind::kInvalidValue, "A")));
  EXPECT_THAT(refused("[A]"), AllOf(At(4, 9), IsError(ErrorKind::kInvalidValue, "A")));
  EXPECT_THAT(refused("[{A: [1]}]"), IsError(ErrorKind::kInvalidValue, "A"));
}

}  // namespace
}  // namespace sweep::grid
