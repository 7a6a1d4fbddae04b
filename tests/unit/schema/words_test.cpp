// Words that processes write for each other: each has one spelling, which is read back as what was written.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "schema/xid.h"

namespace sweep {
namespace {

TEST(PhaseWords, EachIsReadBack) {
  for (std::uint32_t i = 0; i <= static_cast<std::uint32_t>(Phase::kDone); ++i) {
    const auto phase = static_cast<Phase>(i);
    EXPECT_EQ(phase_from(to_string(phase)), phase) << to_string(phase);
  }
  EXPECT_EQ(to_string(static_cast<Phase>(static_cast<std::uint32_t>(Phase::kDone) + 1)), "unknown");
  EXPECT_EQ(to_string(Phase::kWarmup), "warmup");
  for (const char* word : {"", "unknown", "Step", "warm-up", "step "}) EXPECT_FALSE(phase_from(word)) << word;
}

TEST(PhaseWords, ARecordOfTheWarmUpSaysSo) {
  RankRecord record;
  record.phase = Phase::kWarmup;
  const auto json = to_json(record);
  EXPECT_EQ(json.at("phase"), "warmup");
  EXPECT_EQ(from_json<RankRecord>(json)->phase, Phase::kWarmup);
  EXPECT_FALSE(from_json<RankRecord>({{"phase", "lunch"}}));
  EXPECT_FALSE(from_json<RankRecord>({{"phase", 4}}));
  EXPECT_FALSE(from_json<RankRecord>(nlohmann::json::object())->phase);
}

TEST(Xid, TheGpusOwnFailuresAreTold) {
  for (const i64 xid : {48, 79, 95}) EXPECT_TRUE(is_hardware_fault(xid)) << xid;
  for (const i64 xid : {-1, 0, 13, 31, 43, 45, 63, 1000}) EXPECT_FALSE(is_hardware_fault(xid)) << xid;
  EXPECT_EQ(meaning_of_xid(1000), "");
}

TEST(Xid, AnAttemptsEndCarriesThem) {
  AttemptEnd end;
  end.gpu_errors = {{"n1", "GPU-aa", 3, 79}, {"n2", "GPU-bb", std::nullopt, 31}};
  const auto back = from_json<AttemptEnd>(to_json(end));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->gpu_errors, end.gpu_errors);
  EXPECT_FALSE(from_json<AttemptEnd>({{"gpu_errors", {{{"xid", "79"}}}}}));
}

}  // namespace
}  // namespace sweep
