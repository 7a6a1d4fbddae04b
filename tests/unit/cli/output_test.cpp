// -o FILE: what it may replace.
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

using Output = CommandTest;

TEST_F(Output, ReplacesAFileAndNoDatabase) {
  start(2);
  finish(plan_[0], Outcome::kOk, 5);
  const std::string link = dir_ / "link.csv", old = file("old.csv", "old");
  std::filesystem::create_symlink(path_, link);
  const std::vector<std::string> count = {"query", "select count(*) from results where outcome = 'ok'",
                                          "--csv"};
  const std::string before = ask(count).out;
  const std::vector<std::vector<std::string>> kinds = {
      {"export", "csv"}, {"export", "columns"}, {"export", "parquet"}, {"report"}};
  for (auto words : kinds)
    for (const std::string& to : {path_.string(), link}) {
      auto named = words;
      named.insert(named.end(), {"-o", to});
      EXPECT_EQ(ask(named).code, kBadInput) << words.back();
    }
  EXPECT_EQ(ask(count).out, before);
  EXPECT_EQ(ask({"export", "csv", "-o", old}).code, kAnswered);
  EXPECT_EQ(csv_rows(*files::read(old)).size(), 2u);
}

}  // namespace
}  // namespace sweep::cli
