#include "orchestrator/answers/format.h"

#include <gtest/gtest.h>

#include <limits>

#include "orchestrator/answers/charts/palette.h"
#include "orchestrator/answers/names.h"

namespace sweep::answers {
namespace {

TEST(Format, ThreeSignificantDigits) {
  EXPECT_EQ(significant(0), "0");
  EXPECT_EQ(significant(1234.5), "1235");
  EXPECT_EQ(significant(123.4), "123");
  EXPECT_EQ(significant(12.34), "12.3");
  EXPECT_EQ(significant(1.234), "1.23");
  EXPECT_EQ(significant(0.1234), "0.123");
  EXPECT_EQ(significant(0.01234), "0.0123");
  EXPECT_EQ(significant(0.0001234), "1.23e-4");
  EXPECT_EQ(significant(-12.34), "-12.3");
  EXPECT_EQ(significant(std::numeric_limits<double>::quiet_NaN()), "-");
}

TEST(Format, HalvesRoundAsInTheBrowser) {
  EXPECT_EQ(significant(100.5), "101");
  EXPECT_EQ(significant(12.25), "12.3");
  EXPECT_EQ(significant(1.125), "1.13");
}

TEST(Format, SiSuffixes) {
  EXPECT_EQ(si(999), "999");
  EXPECT_EQ(si(12345), "12.3k");
  EXPECT_EQ(si(989e12), "989T");
  EXPECT_EQ(si(1e20), "100000P");
}

TEST(Format, UnitsFollowTheLargestOfTheColumn) {
  EXPECT_EQ(scale_for("bytes", 80e9).unit, "GiB");
  EXPECT_EQ(scale_for("bytes", 5e6)(5 * 1048576.0), "5.00");
  EXPECT_EQ(scale_for("fraction", 0.5)(0.412), "41.2");
  EXPECT_EQ(show(Value{i64{4096}}, scale_for("tokens", 4096)), "4096");
  EXPECT_EQ(show(Value{}, scale_for("ms", 1)), "-");
}

TEST(Format, Durations) {
  EXPECT_EQ(duration(0.5), "0.500 s");
  EXPECT_EQ(duration(41), "41 s");
  EXPECT_EQ(duration(200), "3 min 20 s");
  EXPECT_EQ(duration(7500), "2 h 05 min");
  EXPECT_EQ(duration(3 * 86400 + 4 * 3600), "3 d 4 h");
  EXPECT_EQ(duration(-1), "-");
}

TEST(Format, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(display_width("grün"), 4u);
  EXPECT_EQ(display_width("模型"), 4u);
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit("模型模型", 5), "模型…");
  EXPECT_EQ(fit("abc", 3), "abc");
  EXPECT_EQ(fit("abc", 0), "");
}

TEST(Format, MarkupIsEscaped) {
  EXPECT_EQ(escape_xml("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
}

TEST(Format, NaturalOrderComparesNumbersAsNumbers) {
  EXPECT_TRUE(natural_less("1B", "8B"));
  EXPECT_TRUE(natural_less("8B", "80B"));
  EXPECT_TRUE(natural_less("bs2", "bs16"));
  EXPECT_TRUE(natural_less("a", "a1"));
  EXPECT_FALSE(natural_less("a01", "a01"));
  EXPECT_NE(natural_less("a1", "a01"), natural_less("a01", "a1"));
  EXPECT_TRUE(value_less(Value{}, Value{i64{-5}}));
  EXPECT_TRUE(value_less(Value{i64{2}}, Value{10.5}));
  EXPECT_TRUE(value_less(Value{i64{99}}, Value{std::string("1")}));
}

TEST(Palette, TextIsReadableOnEveryColour) {
  EXPECT_TRUE(paint(0).light_text);
  EXPECT_FALSE(paint(1).light_text);
  EXPECT_EQ(paint(0).fill, "#440154");
  EXPECT_EQ(paint(1).fill, "#fde725");
  EXPECT_EQ(paint(std::numeric_limits<double>::quiet_NaN()).fill, "#440154");
}

TEST(Palette, BrighterIsBetterWhicheverWayTheMetricGoes) {
  EXPECT_EQ(colours_for({10, 20}, false).share(10), 0);
  EXPECT_EQ(colours_for({10, 20}, true).share(10), 1);
  EXPECT_EQ(colours_for({5}, false).share(5), 1);
  EXPECT_TRUE(colours_for({1, 1000}, false).log);
  EXPECT_FALSE(colours_for({0, 1000}, false).log);
}

// 4.5 % at 64 nodes took a third of the colours from the 25 to 45 % of all others.
TEST(Palette, AnOutlierDoesNotTakeTheColoursFromTheRest) {
  const Colours of = colours_for({4.5, 27, 29, 31, 33, 36, 38, 40, 43}, false);
  EXPECT_EQ(of.low, 27);
  EXPECT_EQ(of.high, 43);
  EXPECT_TRUE(of.below);
  EXPECT_FALSE(of.above);
  EXPECT_EQ(of.share(4.5), 0);
  EXPECT_EQ(of.share(35), 0.5);
  EXPECT_FALSE(colours_for({10, 12, 14, 16, 18}, false).below) << "nothing sticks out";
}

TEST(Format, AShareThatRoundsToZeroHasNoSign) {
  EXPECT_EQ(signed_percent(-0.0004), "0.0 %");
  EXPECT_EQ(signed_percent(0.0004), "0.0 %");
  EXPECT_EQ(signed_percent(-0.0006), "-0.1 %");
  EXPECT_EQ(signed_percent(-0.1), "-10.0 %");
  EXPECT_EQ(signed_percent(0.125), "+12.5 %");
}

TEST(Names, LongLabelsLoseWhatTheyShareNotWhereTheyDiffer) {
  const std::vector<std::string> short_ones = {"a", "b"};
  EXPECT_EQ(shortened(short_ones, 8), short_ones);
  EXPECT_EQ(shortened({"nodes=1 gpus_per_node=8 a", "nodes=1 gpus_per_node=8 b"}, 10),
            (std::vector<std::string>{"…a", "…b"}));
  const std::vector<std::string> unlike = {"a long label of one kind", "another that is long too"};
  EXPECT_EQ(shortened(unlike, 10), unlike);
}

}  // namespace
}  // namespace sweep::answers
