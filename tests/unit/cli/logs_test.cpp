// sweep logs: which attempt and rank it shows.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "schema/spool.h"
#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

class Logs : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    start(2);
    first_ = finish(plan_[0], Outcome::kNodeLost);
    last_ = finish(plan_[0], Outcome::kOk, 5);
    for (const i64 attempt : {first_, last_})
      for (const i64 rank : {0, 1}) write(attempt, rank, fmt::format("{} of {}\n", rank, attempt));
  }
  std::string log_file(i64 attempt, i64 rank) const {
    const auto spool = std::filesystem::path(path_.string() + ".spool") / allocation_;
    return spool::rank_log(spool::attempt_dir(spool, attempt), rank);
  }
  void write(i64 attempt, i64 rank, const std::string& text) const {
    const std::string file = log_file(attempt, rank);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  i64 first_ = 0, last_ = 0;
};

TEST_F(Logs, TheLastAttemptAndRank0UnlessOthersAreNamed) {
  EXPECT_EQ(ask({"logs", plan_[0].id}).out, fmt::format("0 of {}\n", last_));
  const auto first = std::to_string(first_);
  EXPECT_EQ(ask({"logs", plan_[0].id, "--attempt", first, "--rank", "1"}).out, "1 of " + first + "\n");
}

TEST_F(Logs, TheDocumentSaysWhoseLogItIsAndKeepsBytesThatAreNoText) {
  write(last_, 1, "loss \xff\n");
  const auto document = nlohmann::json::parse(ask({"logs", plan_[0].id, "--rank", "1", "--json"}).out);
  const nlohmann::json expected{{"trial", plan_[0].id},
                                {"attempt", last_},
                                {"rank", 1},
                                {"file", log_file(last_, 1)},
                                {"text", "loss \xEF\xBF\xBD\n"}};
  EXPECT_EQ(document, expected);
}

TEST_F(Logs, RefusesWhatWasNeverWritten) {
  const std::vector<std::vector<std::string>> wrong = {
      {"logs", plan_[0].id, "--rank", "2"},
      {"logs", plan_[0].id, "--rank", "-1"},
      {"logs", plan_[0].id, "--attempt", "99"},
      {"logs", plan_[1].id},
  };
  for (const auto& words : wrong) {
    const Answer said = ask(words);
    EXPECT_EQ(said.code, kBadInput) << words.back();
    EXPECT_EQ(said.out, "");
  }
  std::filesystem::remove(log_file(last_, 0));
  EXPECT_EQ(ask({"logs", plan_[0].id}).code, kBadInput) << "the file is gone";
}

}  // namespace
}  // namespace sweep::cli
