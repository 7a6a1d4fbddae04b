// Whether a machine can rehearse, by its facts.
#include "orchestrator/driver/rehearsal_check.h"

#include <gtest/gtest.h>

namespace sweep::driver {
namespace {

RehearsalFacts able() {
  RehearsalFacts out;
  out.phantoms = "/opt/phantom";
  out.rank = nlohmann::json{{"cuda", "13.0"}, {"gpu_plugin", true}};
  out.shm_free_bytes = 1e9, out.memory_free_bytes = 16e9;
  return out;
}

TEST(RehearsalCheck, AMachineWithEverythingCan) {
  EXPECT_FALSE(cannot_rehearse(able(), 8));
}

TEST(RehearsalCheck, NamesTheFirstThingThatIsMissing) {
  auto facts = able();
  facts.missing = "libcuda.so.1";
  EXPECT_NE(cannot_rehearse(facts, 8)->find("/opt/phantom/libcuda.so.1"), std::string::npos);
  facts = able(), facts.rank = fail("no such program");
  EXPECT_NE(cannot_rehearse(facts, 8)->find("no such program"), std::string::npos);
  facts = able(), (*facts.rank)["cuda"] = "";
  EXPECT_NE(cannot_rehearse(facts, 8)->find("SWEEP_TORCH"), std::string::npos);
  facts = able(), (*facts.rank)["gpu_plugin"] = false;
  EXPECT_NE(cannot_rehearse(facts, 8)->find("libsweep_cuda.so"), std::string::npos);
}

TEST(RehearsalCheck, SpaceIsCountedByRanks) {
  auto facts = able();
  facts.shm_free_bytes = 100 << 20;
  EXPECT_FALSE(cannot_rehearse(facts, 4));
  EXPECT_NE(cannot_rehearse(facts, 16)->find("/dev/shm"), std::string::npos);
  facts = able(), facts.memory_free_bytes = 1100 << 20;
  EXPECT_FALSE(cannot_rehearse(facts, 4));
  EXPECT_NE(cannot_rehearse(facts, 8)->find("--rehearse-ranks"), std::string::npos);
  facts.memory_free_bytes.reset();
  EXPECT_FALSE(cannot_rehearse(facts, 8)) << "what is not known refuses nothing";
}

}  // namespace
}  // namespace sweep::driver
