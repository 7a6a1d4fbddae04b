// Axes and their words: what ids hash, what JSON holds and what is refused.
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

// Each axis alone, with each of its words or the ends of its range.
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

TEST(Codec, AWordThatAnAxisDoesNotHaveIsRefusedWithThoseItHas) {
  const auto trial = from_json<Trial>({{"schedule", "2f2b"}});
  ASSERT_FALSE(trial);
  for (const std::string_view word : ChoiceWords<Schedule>::kWords)
    EXPECT_THAT(trial.error().message, ::testing::HasSubstr(std::string(word)));
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
        EXPECT_EQ(fmt::format("{}", value), to_string(value));
      }
      for (const char* word : {"", "none of these", "k1f1b"}) EXPECT_FALSE(choice_from<T>(word)) << info.key;
    }
  });
}

}  // namespace
}  // namespace sweep
