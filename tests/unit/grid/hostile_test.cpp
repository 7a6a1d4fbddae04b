// Files made to hurt: refused quickly, in bounded memory, with a place.
#include <gmock/gmock.h>

#include "grid_text.h"
#include "orchestrator/grid/document.h"
#include "orchestrator/grid/spec.h"

namespace sweep::grid {
namespace {

using ::testing::AllOf;

const char* const kTwelveDigits =
    "grid:\n  dp: {range: [1, 1000, 1]}\n  tp: {range: [1, 1000, 1]}\n  pp: {range: [1, 1000, 1]}\n  cp: "
    "{range: [1, 1000, 1]}\n";

TEST(GridHostile, AGridOfTenToTheTwelve) {
  EXPECT_THAT(error_of(kHead + kTwelveDigits), AllOf(At(3, 1), IsError(ErrorKind::kInvalidValue, "grid")));
  EXPECT_THAT(error_of(kHead + "grid:\n  dp: {range: [1, 1000, 1]}\n  tp: [1, 2]\n", {.max_points = 1000}),
              AllOf(At(3, 1), IsError(ErrorKind::kInvalidValue, "grid")));
}

TEST(GridHostile, AGridThatIsAllowedIsCountedNotBuilt) {
  const auto grid = must(
      read_text(kHead + kTwelveDigits + "where: [dp == 0]\n", "g.yaml", {.max_points = 2'000'000'000'000}));
  EXPECT_EQ(grid.spec->points, 1'000'000'000'000u);
  const auto counts = expand(
      grid, [](PlanEntry&&) { return true; }, 10);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->dropped_where, 1'000'000'000'000u);
}

TEST(GridHostile, TheCountSaturates) {
  const std::string axes = std::string(kTwelveDigits) +
                           "  ep: {range: [1, 1000000, 1]}\n  micro_batch_size: {range: [1, 1000000, 1]}\n";
  EXPECT_THAT(error_of(kHead + axes), AllOf(At(3, 1), IsError(ErrorKind::kInvalidValue, "grid")));
}

TEST(GridHostile, AliasesThatExplode) {
  std::string text = kHead + "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 30; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) text += (k ? ", *a" : "*a") + std::to_string(i - 1);
    text += "]\n";
  }
  EXPECT_THAT(error_of(text), AllOf(At(8, 15), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("name: &a [*a]\n"), AllOf(At(1, 11), IsError(ErrorKind::kInvalidValue, "a")));
}

TEST(GridHostile, AliasesThatDoNotExplodeAreFine) {
  const auto e = expanded(kHead + "grid: {tp: &few [1, 2], pp: *few}\n");
  EXPECT_EQ(e.counts.admitted, 4u);
}

TEST(GridHostile, DeepNesting) {
  EXPECT_THAT(error_of("name: " + std::string(100, '[') + std::string(100, ']') + "\n"),
              AllOf(At(1, 38), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of(std::string(200'000, '[')), AllOf(At(1, 33), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of(std::string(200'000, '{')), AllOf(At(1, 33), IsError(ErrorKind::kInvalidValue)));
  std::string block;
  for (int i = 0; i < 100; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(error_of(block), AllOf(At(33, 33), IsError(ErrorKind::kInvalidValue)));
}

TEST(GridHostile, BytesThatAreNotText) {
  EXPECT_THAT(error_of("name: t\nmodel: \xff\n"), AllOf(At(2, 8), IsError(ErrorKind::kInvalidValue)));
  for (const std::string bad :
       {"\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\x80", "\x01", "\x7F"}) {
    EXPECT_THAT(error_of("name: " + bad), AllOf(At(1, 7), IsError(ErrorKind::kInvalidValue))) << bad;
  }
  EXPECT_THAT(error_of(std::string("name: a\0b", 9)), AllOf(At(1, 8), IsError(ErrorKind::kInvalidValue)));
  EXPECT_TRUE(read_text("\xEF\xBB\xBF" + kHead + "question: \xE2\x82\xAC?\ngrid: {tp: [1]}\n", "g.yaml"));
}

TEST(GridHostile, AQuoteThatIsNeverClosedIsNamedWhereItOpens) {
  EXPECT_THAT(
      error_of(kHead + "grid: {seq_len: [64]}\nquestion: \"abc\nwhere: [seq_len > 100]\n"),
      AllOf(At(5, 1), IsError(ErrorKind::kInvalidValue)));  // the first line that cannot be inside the quotes
  EXPECT_THAT(error_of(kHead + "grid: {seq_len: [64]}\nquestion: 'abc\n"),
              AllOf(At(4, 11), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of(kHead + "grid: {seq_len: [64, \n"),
              AllOf(At(3, 17), IsError(ErrorKind::kInvalidValue)));
}

TEST(GridHostile, TabsInTheIndentationAreCalledThat) {
  for (const std::string lines :
       {"base:\n\ttp: 1\n", "base:\n  tp: 1\n\tpp: 1\n", "base:\n  tp: 1\n  \tpp: 1\n"})
    EXPECT_THAT(error_of(kHead + lines), IsError(ErrorKind::kInvalidValue)) << lines;
}

TEST(GridHostile, ControlCharactersAreCalledThat) {
  EXPECT_THAT(error_of(std::string("name: a\0b", 9)), AllOf(At(1, 8), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("name: \x1b[2J"), AllOf(At(1, 7), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("name: \xC2\x9B"), AllOf(At(1, 7), IsError(ErrorKind::kInvalidValue)));
}

TEST(GridHostile, LinesMayEndAsOnOtherSystems) {
  for (const std::string end : {"\r\n", "\r"}) {
    const auto grid = must(read_text("name: t" + end + "model: llama3-8b" + end + "question: |" + end +
                                         "  a" + end + "  b" + end + "grid: {tp: [1]}" + end,
                                     "g.yaml"));
    EXPECT_EQ(grid.question, "a\nb\n");
  }
}

TEST(GridHostile, RepeatedKeys) {
  EXPECT_THAT(error_of(kHead + "name: u\n"), AllOf(At(3, 1), IsError(ErrorKind::kConflict, "name")));
  EXPECT_THAT(error_of(kHead + "grid: {tp: [1], pp: [1], tp: [2]}\n"),
              AllOf(At(3, 26), IsError(ErrorKind::kConflict, "tp")));
}

TEST(GridHostile, NotAGridAtAll) {
  EXPECT_THAT(error_of(""), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("[1, 2]"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("word"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("a: b: c"), AllOf(At(1, 5), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("name: 'open"), AllOf(At(1, 7), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("name: t\n---\nname: u\n"), AllOf(At(2, 1), IsError(ErrorKind::kUnsupported)));
  EXPECT_THAT(error_of("name: !!python/object x\n"), AllOf(At(1, 7), IsError(ErrorKind::kUnsupported)));
  EXPECT_THAT(error_of("? [a]\n: b\n"), AllOf(At(1, 1), IsError(ErrorKind::kUnsupported)));
  EXPECT_THAT(error_of("[a]: b\n"), AllOf(At(1, 1), IsError(ErrorKind::kUnsupported)));
  EXPECT_THAT(error_of("<<: {name: t}\n"), AllOf(At(1, 1), IsError(ErrorKind::kUnknownName, "<<")));
  EXPECT_THAT(error_of(std::string(kMaxFileBytes + 1, '#')),
              AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue)));
}

TEST(GridHostile, TooManyOfAnything) {
  std::string many = kHead + "grid: {tp: [1]}\nwhere: [";
  for (int i = 0; i < 300; ++i) many += "tp == 1, ";
  EXPECT_THAT(error_of(many + "tp == 1]\n"), AllOf(At(4, 1), IsError(ErrorKind::kInvalidValue, "where")));
  std::string items = kHead + "include: [";
  for (int i = 0; i < 10'001; ++i) items += "{tp: 1}, ";
  EXPECT_THAT(error_of(items + "{tp: 1}]\n"), AllOf(At(3, 1), IsError(ErrorKind::kInvalidValue, "include")));
  std::string nodes = kHead + "grid: {tp: [1";
  for (int i = 0; i < 250'000; ++i) nodes += ",1";
  EXPECT_THAT(error_of(nodes + "]}\n"), AllOf(At(3, 400011), IsError(ErrorKind::kInvalidValue)));
}

}  // namespace
}  // namespace sweep::grid
