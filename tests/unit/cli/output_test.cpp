// -o FILE: what it may replace.
#include <gtest/gtest.h>
#include <sys/stat.h>

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

TEST_F(Output, AFrameIsWrittenIntoAFileAlone) {
  start(1);
  const std::string pipe = dir_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const char* format : {"parquet", "arrow"})
    for (const std::string& to : {std::string("-"), pipe, dir_.string()})
      EXPECT_EQ(ask({"export", format, "-o", to}).code, kBadInput) << to;
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(SplitList, KeepsTheSpacesWithinAWord) {
  EXPECT_EQ(split_list(" a , b c ,, d"), (std::vector<std::string>{"a", "b c", "d"}));
  EXPECT_TRUE(split_list(" , ").empty());
}

}  // namespace
}  // namespace sweep::cli
