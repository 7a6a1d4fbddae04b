// Whether a machine can rehearse, by its facts.
#include "orchestrator/driver/rehearsal_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expected.h"
#include "tests/support/error_matchers.h"

namespace sweep::driver {
namespace {

RehearsalFacts able() {
  RehearsalFacts out;
  out.phantoms = "/opt/phantom";
  out.rank = RankFacts{.cuda = "13.0", .gpu_plugin = true};
  out.shm_free_bytes = 1e9, out.memory_free_bytes = 16e9;
  return out;
}

TEST(RehearsalCheck, AMachineWithEverythingCan) {
  EXPECT_FALSE(cannot_rehearse(able(), 8));
}

TEST(RehearsalCheck, NamesTheFirstThingThatIsMissing) {
  auto facts = able();
  facts.missing = "libcuda.so.1";
  EXPECT_THAT(*cannot_rehearse(facts, 8), IsError(ErrorKind::kNotFound, "/opt/phantom/libcuda.so.1"));
  for (const char* folder : {"/opt/a b/phantom", "/opt/a:b/phantom", "/opt/a;b/phantom"}) {
    facts = able(), facts.phantoms = folder;
    EXPECT_THAT(*cannot_rehearse(facts, 8), IsError(ErrorKind::kUnsupported, folder));
  }
  facts = able(), facts.rank = fail("no such program");
  EXPECT_THAT(*cannot_rehearse(facts, 8), IsError(ErrorKind::kFailed));
  facts = able(), facts.rank->cuda.clear();
  EXPECT_THAT(*cannot_rehearse(facts, 8), IsError(ErrorKind::kUnsupported));
  facts = able(), facts.rank->gpu_plugin = false;
  EXPECT_THAT(*cannot_rehearse(facts, 8), IsError(ErrorKind::kNotFound));
}

TEST(RehearsalCheck, CommandsNeedNoRankOfOurs) {
  auto facts = able();
  facts.rank = fail("no such program");
  facts.built_in = false;
  EXPECT_FALSE(cannot_rehearse(facts, 8));
}

TEST(RehearsalCheck, SpaceIsCountedByRanks) {
  auto facts = able();
  facts.shm_free_bytes = 100 << 20;
  EXPECT_FALSE(cannot_rehearse(facts, 4));
  EXPECT_THAT(*cannot_rehearse(facts, 16), IsError(ErrorKind::kRefused, "/dev/shm"));
  facts = able(), facts.memory_free_bytes = 1100 << 20;
  EXPECT_FALSE(cannot_rehearse(facts, 4));
  EXPECT_THAT(*cannot_rehearse(facts, 8), IsError(ErrorKind::kRefused, "memory"));
  facts.memory_free_bytes.reset();
  EXPECT_FALSE(cannot_rehearse(facts, 8)) << "what is not known refuses nothing";
}

}  // namespace
}  // namespace sweep::driver
