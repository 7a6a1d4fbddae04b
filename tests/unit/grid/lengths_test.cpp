// The axis `lengths`: a file's lengths become part of the trial; what is wrong is refused with its place.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "grid_text.h"

namespace sweep::grid {
namespace {

using ::testing::AllOf;

TEST(GridRead, LengthsOfAFileBecomePartOfTheTrial) {
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ("grid-lengths-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "data.csv") << "length\n30\n10\n20\n";
  std::ofstream(folder / "wrong.csv") << "30\nten\n";
  const auto with = [&](const std::string& lengths) {
    return read_text("name: t\nmodel: gpt2\ngrid:\n  lengths: " + lengths + "\n", folder / "g.yaml");
  };
  const auto grid = must(with("[file data.csv, lognormal  300 0.8, fixed 64]"));
  std::vector<std::string> lengths;
  ASSERT_TRUE(expand(
      grid, [&](PlanEntry&& e) { return lengths.push_back(e.trial.lengths), true; }, 0));
  EXPECT_EQ(lengths, (std::vector<std::string>{"list 10 20 30", "lognormal 300 0.8", "fixed 64"}));
  const auto refused = [&](const std::string& word) {
    const auto wrong = with(word);
    EXPECT_FALSE(wrong) << word;
    return wrong ? Error{} : wrong.error();
  };
  const Error of_line = refused("file wrong.csv");
  EXPECT_THAT(of_line, AllOf(At(4, 12), IsError(ErrorKind::kInvalidValue, "ten")));
  EXPECT_NE(of_line.message.find("wrong.csv:2:"), std::string::npos) << of_line.message;
  EXPECT_THAT(refused("file nowhere.csv"), AllOf(At(4, 12), IsError(ErrorKind::kNotFound)));
  EXPECT_THAT(refused("file /dev/zero"), AllOf(At(4, 12), IsError(ErrorKind::kUnreadable)));
  EXPECT_THAT(refused("gamma 2"), AllOf(At(4, 12), IsError(ErrorKind::kInvalidValue, "lengths")));
  std::filesystem::remove_all(folder);
}

TEST(GridRead, ASequenceLengthMayBeAPercentileOfAFile) {
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ("grid-percentile-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  {
    std::ofstream file(folder / "data.csv");
    file << "length\n";
    for (int tokens = 200; tokens > 0; --tokens) file << tokens << '\n';
  }
  std::ofstream(folder / "huge.csv") << "100000000\n";
  const auto read = [&](const std::string& rest) {
    return read_text("name: t\nmodel: gpt2\n" + rest + "\n", folder / "g.yaml");
  };
  const auto seq_lens = [&](const std::string& rest) {
    const auto grid = read(rest);
    EXPECT_TRUE(grid) << (grid ? "" : grid.error().message);
    std::vector<i64> out;
    if (!grid) return out;
    EXPECT_TRUE(expand(
        *grid, [&](PlanEntry&& e) { return out.push_back(e.trial.seq_len), true; }, 0));
    return out;
  };
  EXPECT_EQ(seq_lens("base: {seq_len: {percentile: 95, of: data.csv}}"), std::vector<i64>{190});
  EXPECT_EQ(seq_lens("grid: {seq_len: {percentile: 100, of: data.csv}}"), std::vector<i64>{200});
  EXPECT_EQ(seq_lens("grid: {seq_len: [512, {percentile: 95, of: data.csv, multiple_of: 64}]}"),
            (std::vector<i64>{512, 192}));
  EXPECT_EQ(seq_lens("grid: {seq_len: {pow2: [128, 256]}}"), (std::vector<i64>{128, 256}));
  const auto refused = [&](const std::string& value) {
    return error_in(read("base: {seq_len: " + value + "}"));
  };
  EXPECT_THAT(refused("{percentile: 95}"), AllOf(At(3, 17), IsError(ErrorKind::kMissing, "of")));
  EXPECT_THAT(refused("{percentile: 0, of: data.csv}"), At(3, 30));
  EXPECT_THAT(refused("{percentile: 95, of: nowhere.csv}"), AllOf(At(3, 38), IsError(ErrorKind::kNotFound)));
  EXPECT_THAT(refused("{percentile: 95, of: data.csv, multiple: 8}"),
              IsError(ErrorKind::kUnknownName, "multiple"));
  EXPECT_THAT(refused("{percentile: 95, of: huge.csv, multiple_of: 3}"),
              IsError(ErrorKind::kInvalidValue, "seq_len"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sweep::grid
