// Axes have one current spelling for people and one stored spelling for ids, databases and spools.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "schema/axis_domain.h"
#include "schema/codec.h"

namespace sweep {
namespace {

// Each axis alone, with each of its words or the ends of its range, as files of the first versions spell it.
TEST(TrialId, IsFrozenForEveryAxis) {
  std::ifstream file(std::string(SWEEP_SOURCE_DIR) + "/tests/golden/trial_ids.tsv");
  std::set<std::string_view> seen;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string stored, form, id;
    std::getline(fields, stored, '\t'), std::getline(fields, form, '\t'), std::getline(fields, id);
    const auto trial = from_json<Trial>(*parse_json(stored));
    ASSERT_TRUE(trial) << stored << ": " << trial.error().message;
    EXPECT_EQ(canonical(*trial), form);
    EXPECT_EQ(trial_id(*trial), id) << stored;
    EXPECT_EQ(from_json<Trial>(to_json(*trial)).value(), *trial) << stored;
    for_each_axis(*trial, [&](const FieldInfo& axis, const auto& preset, const auto& value) {
      if (value != preset) seen.insert(axis.key);
    });
  }
  const Trial none;
  for_each_axis(none, [&](const FieldInfo& axis, const auto&, const auto&) {
    EXPECT_TRUE(seen.contains(axis.key)) << axis.key << ": add lines of it to tests/golden/trial_ids.tsv";
  });
}

TEST(Codec, AxesAreWrittenByTheirCurrentNamesAndReadByBoth) {
  Trial t;
  t.grad_clip = true, t.grad_bucket_mb = 7, t.reshard_after_forward = false;
  t.cp_comm_type = CpCommType::kAllToAll, t.schedule = Schedule::kGpipe;
  const auto now = to_json(t), stored = to_stored_json(t);
  EXPECT_EQ(now.at("schedule"), "gpipe");
  EXPECT_EQ(stored.at("schedule"), "afab");
  for (const RenamedAxis& axis : kRenamedAxes) {
    EXPECT_TRUE(now.contains(axis.key) && !now.contains(axis.stored)) << axis.key;
    EXPECT_TRUE(stored.contains(axis.stored) && !stored.contains(axis.key)) << axis.key;
  }
  EXPECT_EQ(from_json<Trial>(now).value(), t);
  EXPECT_EQ(from_json<Trial>(stored).value(), t);
  Attempt attempt;
  attempt.trial = t;
  EXPECT_EQ(to_json(attempt).at("trial"), stored);  // spools are read by other versions
}

TEST(Codec, AWordThatAnAxisDoesNotHaveIsRefusedWithThoseItHas) {
  const auto trial = from_json<Trial>({{"schedule", "2f2b"}});
  ASSERT_FALSE(trial);
  for (const std::string_view word : ChoiceWords<Schedule>::kWords)
    EXPECT_THAT(trial.error().message, testing::HasSubstr(std::string(word)));
  EXPECT_FALSE(from_json<Trial>({{"schedule", 3}}));
}

TEST(AxisChoice, EachWordIsReadBackAndNoOther) {
  Trial t;
  for_each_axis(t, [](const FieldInfo& info, const auto&, const auto& member) {
    using T = std::remove_cvref_t<decltype(member)>;
    if constexpr (AxisChoice<T>) {
      EXPECT_EQ(ChoiceWords<T>::kKey, info.key);
      for (std::size_t i = 0; i < ChoiceWords<T>::kWords.size(); ++i) {
        const auto value = static_cast<T>(i);
        EXPECT_EQ(choice_from<T>(to_string(value)), value) << info.key;
        EXPECT_EQ(choice_from<T>(stored_word(value)), value) << info.key;
        EXPECT_EQ(fmt::format("{}", value), to_string(value));
      }
      for (const char* word : {"", "none of these", "k1f1b"}) EXPECT_FALSE(choice_from<T>(word)) << info.key;
    }
  });
}

TEST(AxisNames, EveryRenamedAxisAndWordIsThere) {
  const auto json = to_json(Trial());
  for (const RenamedAxis& axis : kRenamedAxes) {
    EXPECT_TRUE(json.contains(axis.key)) << axis.key;
    EXPECT_EQ(stored_key(axis.key), axis.stored);
    EXPECT_EQ(current_key(axis.stored), axis.key);
    EXPECT_EQ(current_key(axis.key), axis.key);
  }
  for (const RenamedWord& word : kRenamedWords) {
    const AxisDomain* domain = axis_domain(word.key);
    ASSERT_TRUE(domain) << word.key;
    EXPECT_THAT(domain->words, testing::Contains(word.word));
    EXPECT_THAT(domain->words, testing::Not(testing::Contains(word.stored)));
  }
}

}  // namespace
}  // namespace sweep
