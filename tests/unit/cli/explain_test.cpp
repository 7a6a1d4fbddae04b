// sweep explain: which attempt is the answer, and which events are of it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "schema/rehearsal.h"
#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

class ExplainCommand : public CommandTest {
 protected:
  nlohmann::json explained(const PlanEntry& entry) {
    return nlohmann::json::parse(ask({"explain", entry.id, "--json"}).out);
  }
};

TEST_F(ExplainCommand, TheAnswerIsTheAttemptThatTheStoreCallsFinalEvenANodeLost) {
  start(1, R"({"retries_infra":0})");
  finish(plan_[0], Outcome::kNodeLost);
  ASSERT_TRUE(must(store_->final_attempt(sweep_, plan_[0].id))) << "no retry is left";
  EXPECT_EQ(explained(plan_[0])["attempts"][0]["final"], true);
}

TEST_F(ExplainCommand, EventsBelongToTheAttemptThatTheyNameInWhateverWords) {
  start(2);
  const i64 mine = finish(plan_[0], Outcome::kOom), other = finish(plan_[1], Outcome::kOk, 5);
  must(store_->add_event(sweep_, EventKind::kAgent, "its node was left unclean", mine));
  must(store_->add_event(sweep_, EventKind::kAgent, "another trial's", other));
  must(store_->add_event(sweep_, EventKind::kAgent, fmt::format("attempt {}: named, but not meant", mine)));
  const auto events = explained(plan_[0])["events"];
  ASSERT_EQ(events.size(), 1u) << events;
  EXPECT_TRUE(events[0].get<std::string>().ends_with("its node was left unclean"));
}

TEST_F(ExplainCommand, ATrialThatOnlyARehearsalHasIsFoundThereWhereNoSweepIsNamed) {
  start(1);
  store::SweepRow row;
  row.name = rehearsal_of("s");
  const i64 rehearsal = must(store_->ensure_sweep(row)).id;
  const PlanEntry rehearsed = entry(7);
  must(store_->sync_plan(rehearsal, std::vector{plan_[0], rehearsed}, {}));
  EXPECT_EQ(explained(plan_[0])["sweep"], "s") << "the latest sweep comes first";
  const auto found = explained(rehearsed);
  EXPECT_EQ(found["sweep"], row.name);
  EXPECT_EQ(found["rehearsed"], true);
  EXPECT_EQ(ask({"explain", rehearsed.id, "s"}).code, kBadInput) << "a sweep that is named is meant";
}

}  // namespace
}  // namespace sweep::cli
