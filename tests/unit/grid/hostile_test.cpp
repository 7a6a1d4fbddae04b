// Files made to hurt: refused quickly, in bounded memory, with a place.
#include <gmock/gmock.h>

#include "grid_text.h"
#include "orchestrator/grid/document.h"

namespace sweep::grid {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const char* const kTwelveDigits =
    "grid:\n  dp: {range: [1, 1000, 1]}\n  tp: {range: [1, 1000, 1]}\n  pp: {range: [1, 1000, 1]}\n  cp: "
    "{range: [1, 1000, 1]}\n";

TEST(GridHostile, AGridOfTenToTheTwelve) {
  const std::string message = error_of(kHead + kTwelveDigits);
  EXPECT_THAT(message, AllOf(StartsWith("g.yaml:3:1: "), HasSubstr("1000000000000 combinations"),
                             HasSubstr("dp 1000 x tp 1000 x pp 1000 x cp 1000"),
                             testing::Not(HasSubstr("--max-points"))));
  EXPECT_THAT(error_of(kHead + "grid:\n  dp: {range: [1, 1000, 1]}\n  tp: [1, 2]\n", {.max_points = 1000}),
              HasSubstr("dp 1000 x tp 2; shorten an axis, or allow it with --max-points 2000"));
}

TEST(GridHostile, AGridThatIsAllowedIsCountedNotBuilt) {
  const auto grid =
      read_text(kHead + kTwelveDigits + "where: [dp == 0]\n", "g.yaml", {.max_points = 2'000'000'000'000});
  ASSERT_TRUE(grid) << grid.error().message;
  EXPECT_EQ(points(*grid), 1'000'000'000'000u);
  const auto counts = expand(
      *grid, [](PlanEntry&&) { return true; }, 10);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->dropped_where, 1'000'000'000'000u);
}

TEST(GridHostile, TheCountSaturates) {
  const std::string axes = std::string(kTwelveDigits) +
                           "  ep: {range: [1, 1000000, 1]}\n  micro_batch_size: {range: [1, 1000000, 1]}\n";
  EXPECT_THAT(error_of(kHead + axes), HasSubstr("more than 18446744073709551615 combinations"));
}

TEST(GridHostile, AliasesThatExplode) {
  std::string text = kHead + "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 30; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) text += (k ? ", *a" : "*a") + std::to_string(i - 1);
    text += "]\n";
  }
  EXPECT_THAT(error_of(text), AllOf(StartsWith("g.yaml:"), HasSubstr("once aliases are expanded")));
  EXPECT_THAT(error_of("name: &a [*a]\n"),
              AllOf(StartsWith("g.yaml:1:"), HasSubstr("inside its own anchor")));
}

TEST(GridHostile, AliasesThatDoNotExplodeAreFine) {
  const auto e = expanded(kHead + "grid: {tp: &few [1, 2], pp: *few}\n");
  EXPECT_EQ(e.counts.admitted, 4u);
}

TEST(GridHostile, DeepNesting) {
  EXPECT_THAT(error_of("name: " + std::string(100, '[') + std::string(100, ']') + "\n"),
              HasSubstr("nested deeper than 32"));
  EXPECT_THAT(error_of(std::string(200'000, '[')), StartsWith("g.yaml:1:"));
  EXPECT_THAT(error_of(std::string(200'000, '{')), StartsWith("g.yaml:1:"));
  std::string block;
  for (int i = 0; i < 100; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(error_of(block), HasSubstr("nested deeper than 32"));
}

TEST(GridHostile, BytesThatAreNotText) {
  EXPECT_THAT(error_of("name: t\nmodel: \xff\n"),
              AllOf(StartsWith("g.yaml:2:8: "), HasSubstr("0xff is not UTF-8")));
  for (const std::string bad :
       {"\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\x80", "\x01", "\x7F"}) {
    EXPECT_THAT(error_of("name: " + bad), StartsWith("g.yaml:1:7: ")) << bad;
  }
  EXPECT_THAT(error_of(std::string("name: a\0b", 9)), StartsWith("g.yaml:1:8: "));
  EXPECT_TRUE(read_text("\xEF\xBB\xBF" + kHead + "question: \xE2\x82\xAC?\ngrid: {tp: [1]}\n", "g.yaml"));
}

TEST(GridHostile, AQuoteThatIsNeverClosedIsNamedWhereItOpens) {
  EXPECT_THAT(error_of(kHead + "grid: {seq_len: [64]}\nquestion: \"abc\nwhere: [seq_len > 100]\n"),
              StartsWith("g.yaml:5:1: "));  // the first line that cannot be inside the quotes
  EXPECT_THAT(error_of(kHead + "grid: {seq_len: [64]}\nquestion: 'abc\n"), StartsWith("g.yaml:4:11: "));
  EXPECT_THAT(error_of(kHead + "grid: {seq_len: [64, \n"), StartsWith("g.yaml:3:17: "));
}

TEST(GridHostile, TabsInTheIndentationAreCalledThat) {
  for (const std::string lines :
       {"base:\n\ttp: 1\n", "base:\n  tp: 1\n\tpp: 1\n", "base:\n  tp: 1\n  \tpp: 1\n"})
    EXPECT_THAT(error_of(kHead + lines), HasSubstr("a tab in the indentation")) << lines;
}

TEST(GridHostile, ControlCharactersAreCalledThat) {
  EXPECT_THAT(error_of(std::string("name: a\0b", 9)), HasSubstr("NUL"));
  EXPECT_THAT(error_of("name: \x1b[2J"), HasSubstr("ESC"));
  EXPECT_THAT(error_of("name: \xC2\x9B"), StartsWith("g.yaml:1:7: "));
}

TEST(GridHostile, LinesMayEndAsOnOtherSystems) {
  for (const std::string end : {"\r\n", "\r"}) {
    const auto grid = read_text("name: t" + end + "model: llama3-8b" + end + "question: |" + end + "  a" +
                                    end + "  b" + end + "grid: {tp: [1]}" + end,
                                "g.yaml");
    ASSERT_TRUE(grid) << grid.error().message;
    EXPECT_EQ(grid->question, "a\nb\n");
  }
}

TEST(GridHostile, RepeatedKeys) {
  EXPECT_THAT(error_of(kHead + "name: u\n"),
              AllOf(StartsWith("g.yaml:3:1: "), HasSubstr("already given at line 1")));
  EXPECT_THAT(error_of(kHead + "grid: {tp: [1], pp: [1], tp: [2]}\n"), StartsWith("g.yaml:3:26: "));
}

TEST(GridHostile, NotAGridAtAll) {
  EXPECT_THAT(error_of(""), HasSubstr("holds nothing"));
  EXPECT_THAT(error_of("[1, 2]"), HasSubstr("holds a list"));
  EXPECT_THAT(error_of("word"), HasSubstr("holds a single value"));
  EXPECT_THAT(error_of("a: b: c"), HasSubstr("not valid YAML"));
  EXPECT_THAT(error_of("name: 'open"), HasSubstr("not valid YAML"));
  EXPECT_THAT(error_of("name: t\n---\nname: u\n"), HasSubstr("second document"));
  EXPECT_THAT(error_of("name: !!python/object x\n"), HasSubstr("tag"));
  EXPECT_THAT(error_of("? [a]\n: b\n"), HasSubstr("keys with '?' are not used"));
  EXPECT_THAT(error_of("[a]: b\n"), HasSubstr("a key must be a word"));
  EXPECT_THAT(error_of("<<: {name: t}\n"), HasSubstr("'<<' is not a key"));
  EXPECT_THAT(error_of(std::string(kMaxFileBytes + 1, '#')), HasSubstr("a grid file has at most 1048576"));
}

TEST(GridHostile, TooManyOfAnything) {
  std::string many = kHead + "grid: {tp: [1]}\nwhere: [";
  for (int i = 0; i < 300; ++i) many += "tp == 1, ";
  EXPECT_THAT(error_of(many + "tp == 1]\n"), HasSubstr("more than 256 clauses"));
  std::string items = kHead + "include: [";
  for (int i = 0; i < 10'001; ++i) items += "{tp: 1}, ";
  EXPECT_THAT(error_of(items + "{tp: 1}]\n"), HasSubstr("more than 10000 items"));
  std::string nodes = kHead + "grid: {tp: [1";
  for (int i = 0; i < 250'000; ++i) nodes += ",1";
  EXPECT_THAT(error_of(nodes + "]}\n"), HasSubstr("more than 200000 values"));
}

}  // namespace
}  // namespace sweep::grid
