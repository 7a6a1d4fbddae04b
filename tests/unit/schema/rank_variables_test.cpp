#include "schema/rank_variables.h"

#include <gmock/gmock.h>

#include "tests/support/error_matchers.h"

namespace sweep {
namespace {

TEST(RankVariables, AreATextByName) {
  const auto read = must(rank_variables_from("  NCCL_PROTO=LL  CONF=a:1,b=2 NCCL_ALGO=Ring "));
  EXPECT_EQ(read, (RankVariables{{"CONF", "a:1,b=2"}, {"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL"}}));
  EXPECT_EQ(text_of(read), "CONF=a:1,b=2 NCCL_ALGO=Ring NCCL_PROTO=LL");
  EXPECT_EQ(rank_variables_from("")->size(), 0U);
  EXPECT_EQ(text_of({}), "");
}

TEST(RankVariables, RefuseWhatSweepSetsWhatLoadsLibrariesAndSecrets) {
  for (const char* name :
       {"RANK", "CUDA_VISIBLE_DEVICES", "SWEEP_ATTEMPT", "SWEEP_ANYTHING", "CUDA_DEVICE_ORDER",
        "NCCL_DEBUG_FILE", "TORCH_NCCL_RANKS_PER_ROOT", "OMP_NUM_THREADS", "LD_PRELOAD", "LD_LIBRARY_PATH",
        "LD_AUDIT", "HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY"}) {
    const auto read = rank_variables_from(std::string("A=1 ") + name + "=x");
    ASSERT_FALSE(read) << name;
    EXPECT_THAT(read.error(), IsError(ErrorKind::kInvalidValue, name));
  }
  for (const char* name :
       {"NCCL_ALGO", "CUDA_DEVICE_MAX_CONNECTIONS", "PYTORCH_CUDA_ALLOC_CONF", "NCCL_DEBUG"})
    EXPECT_TRUE(rank_variables_from(std::string(name) + "=x")) << name;
}

TEST(RankVariables, RefuseOtherForms) {
  for (const char* text : {"A", "A=", "=1", "1A=1", "A-B=1", "A=1 A=2", "A=1\tB=2", "A=\x80", "A=1\n"})
    EXPECT_FALSE(rank_variables_from(text)) << text;
}

TEST(RankVariables, SayWhatChangesTheAllocator) {
  EXPECT_TRUE(change_the_allocator(*rank_variables_from("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")));
  EXPECT_TRUE(change_the_allocator(*rank_variables_from("PYTORCH_ALLOC_CONF=max_split_size_mb:64")));
  EXPECT_FALSE(change_the_allocator(*rank_variables_from("NCCL_ALGO=Ring")));
}

}  // namespace
}  // namespace sweep
