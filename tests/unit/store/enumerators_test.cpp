// Statements name enumerators; numbers that SQL text already has equal those of C++.
#include "orchestrator/store/enumerators.h"

#include <gmock/gmock.h>

#include <set>

#include "store_fixture.h"

namespace sweep::store {
namespace {

using ::testing::HasSubstr;
using Text = std::string;

// The SQL of a table or an index of a new database.
class EnumeratorsInSql : public StoreTest {
 protected:
  Text text_of(const Text& name) {
    store_ = open();
    return std::get<Text>(
        must(store_->query("SELECT sql FROM sqlite_schema WHERE name = '" + name + "'")).rows.at(0).at(0));
  }
};

template <class E>
void expect_names(const Text& enumeration, int last) {
  std::set<int> numbers;
  for (const auto& each : enumerators())
    if (each.name.starts_with(enumeration + "::")) numbers.insert(each.number);
  for (int number = 0; number <= last; ++number) {
    EXPECT_TRUE(numbers.contains(number)) << enumeration << ' ' << number;
    EXPECT_NE(to_string(static_cast<E>(number)), "") << enumeration << ' ' << number;
  }
  EXPECT_EQ(static_cast<int>(numbers.size()), last + 1) << enumeration;
}

TEST(Enumerators, EveryOneIsNamed) {
  expect_names<State>("State", static_cast<int>(State::kRetired));
  expect_names<Outcome>("Outcome", static_cast<int>(Outcome::kFailedUnknown));
  expect_names<OomKind>("OomKind", static_cast<int>(OomKind::kHost));
}

TEST(Enumerators, AreReplacedByTheirNumbersAndNothingElseIs) {
  EXPECT_EQ(with_numbers("a = State::kRetired AND b IN (Outcome::kOk, Outcome::kFailedUnknown)"),
            "a = 4 AND b IN (0, 10)");
  for (const char* same :
       {"", "::", "a::b", "State::kRetiredLater", "MyState::kRetired", "'x::y'", "State::"})
    EXPECT_EQ(with_numbers(same), same);
}

TEST(Enumerators, TheInfrastructureOutcomesAreThoseOfTheFunction) {
  EXPECT_EQ(infrastructure_outcomes(), "(Outcome::kNodeLost, Outcome::kCancelled)");
}

// Released migrations hold numbers: they must not change. These are the two.
TEST_F(EnumeratorsInSql, PartialIndicesOfReleasedMigrationsHaveTheNumbersOfTheEnumerators) {
  EXPECT_THAT(text_of("plan_entry_open"), HasSubstr(with_numbers("WHERE state = State::kPending")));
  EXPECT_THAT(text_of("attempt_unfinished"), HasSubstr(with_numbers("WHERE state < State::kFinished")));
}

TEST_F(EnumeratorsInSql, ConditionsOnEnumeratorsUseThePartialIndices) {
  store_ = open();
  const auto plan_of = [&](const Text& sql) {
    Text out;
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    const auto add = [](void* to, int columns, char** values, char**) {
      *static_cast<Text*>(to) += values[columns - 1] + Text("\n");
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db, with_numbers("EXPLAIN QUERY PLAN " + sql).c_str(), add, &out, nullptr),
              SQLITE_OK);
    sqlite3_close(db);
    return out;
  };
  EXPECT_THAT(
      plan_of("SELECT key FROM plan_entry WHERE sweep = ? AND state = State::kPending ORDER BY place"),
      HasSubstr("plan_entry_open"));
  EXPECT_THAT(plan_of("SELECT id FROM attempt WHERE allocation = ? AND state < State::kFinished"),
              HasSubstr("attempt_unfinished"));
}

}  // namespace
}  // namespace sweep::store
