#include "orchestrator/grid/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sweep::grid {
namespace {

using testing::HasSubstr;

// tp 8, pp 3, nodes 2, global_batch_size 256, precision bf16, packing true; everything else 1.
class ExpressionTest : public testing::Test {
 protected:
  ExpressionTest() {
    point_.cells.assign(scope_.size(), Cell{1});
    point_.held.assign(scope_.size(), Presence::kValue);
    set("tp", 8);
    set("pp", 3);
    set("nodes", 2);
    set("global_batch_size", 256);
    set("precision", scope_.words.id("bf16"));
    point_.held[scope_.slot("memory_cap_bytes")] = Presence::kAbsent;
  }
  void set(std::string_view name, i64 value) { point_.cells[scope_.slot(name)].i = value; }

  std::string value_of(std::string_view text) {
    const auto code = compile(text, scope_);
    if (!code) return "at " + std::to_string(code.error().at) + ": " + code.error().message;
    Cell value{0};
    Failure failure;
    if (!evaluate(*code, point_, value, failure)) return explain(failure, *code, scope_, point_);
    return value_text(value, code->type, scope_.words);
  }

  Scope scope_;
  Point point_;
};

TEST_F(ExpressionTest, ArithmeticBindsAsInMathematics) {
  EXPECT_EQ(value_of("1 + 2 * 3"), "7");
  EXPECT_EQ(value_of("(1 + 2) * 3"), "9");
  EXPECT_EQ(value_of("10 - 3 - 2"), "5");
  EXPECT_EQ(value_of("-tp + 1"), "-7");
  EXPECT_EQ(value_of("2 * 1.5"), "3");
  EXPECT_EQ(value_of("1 / 2.0 + 1"), "1.5");
  EXPECT_EQ(value_of("min(tp, pp, 5)"), "3");
  EXPECT_EQ(value_of("max(tp, 8.5)"), "8.5");
}

TEST_F(ExpressionTest, FloorDivisionAndRemainderRoundDownAsInPython) {
  EXPECT_EQ(value_of("-7 // 2"), "-4");
  EXPECT_EQ(value_of("-7 % 3"), "2");
  EXPECT_EQ(value_of("7 % -3"), "-2");
  EXPECT_EQ(value_of("tp // pp"), "2");
}

TEST_F(ExpressionTest, DivisionOfWholeNumbersIsExact) {
  EXPECT_EQ(value_of("tp / 2"), "4");
  EXPECT_EQ(value_of("1 + global_batch_size / (pp * nodes)"),
            "global_batch_size / (pp * nodes) = 256 / (3 * 2) = 42.67 is not whole");
  EXPECT_EQ(value_of("tp / (pp - 3)"), "tp / (pp - 3) = 8 / (3 - 3) divides by zero");
  EXPECT_THAT(value_of("tp % (pp - 3)"), HasSubstr("divides by zero"));
  EXPECT_THAT(value_of("tp / 0.0"), HasSubstr("divides by zero"));
}

TEST_F(ExpressionTest, CeilAndFloorTakeTheQuotientItself) {
  EXPECT_EQ(value_of("ceil(tp / pp)"), "3");
  EXPECT_EQ(value_of("floor(tp / pp)"), "2");
  EXPECT_EQ(value_of("ceil(-tp / pp)"), "-2");
  EXPECT_EQ(value_of("floor(-tp / pp)"), "-3");
  EXPECT_EQ(value_of("ceil(1 + tp / pp)"), "4");
  EXPECT_EQ(value_of("ceil(2.25)"), "3");
  // Beyond the 53 bits of a double, the quotient is still exact.
  EXPECT_EQ(value_of("ceil(9007199254740993 / 1)"), "9007199254740993");
}

TEST_F(ExpressionTest, ComparisonsChainAndBooleansShortCircuit) {
  EXPECT_EQ(value_of("1 < pp <= 3"), "true");
  EXPECT_EQ(value_of("1 < pp < 3"), "false");
  EXPECT_EQ(value_of("3 > pp == 3 > 1"), "false");
  EXPECT_EQ(value_of("1 <= 1.5 < 2 <= 2"), "true");
  EXPECT_EQ(value_of("tp == 8 or tp / 0 == 1"), "true");
  EXPECT_EQ(value_of("tp == 7 and tp / 0 == 1"), "false");
  EXPECT_EQ(value_of("not tp == 7 and not false"), "true");
  EXPECT_EQ(value_of("true or true and false"), "true");
}

TEST_F(ExpressionTest, WordsCompareAndListsHold) {
  EXPECT_EQ(value_of("precision == \"bf16\""), "true");
  EXPECT_EQ(value_of("precision != 'bf16'"), "false");
  EXPECT_EQ(value_of("precision in ['fp32', 'bf16']"), "true");
  EXPECT_EQ(value_of("tp in [1, 2, 4]"), "false");
  EXPECT_EQ(value_of("tp not in [1, 2, 4]"), "true");
  EXPECT_EQ(value_of("tp / 2 in [pp, pp + 1]"), "true");
}

TEST_F(ExpressionTest, AbsentValuesAreSaid) {
  EXPECT_EQ(value_of("memory_cap_bytes > 3"), "memory_cap_bytes has no value");
}

TEST_F(ExpressionTest, OverflowIsSaidNotWrapped) {
  set("tp", i64{1} << 62);
  EXPECT_THAT(value_of("tp * 4"), HasSubstr("too large for 64 bits"));
  EXPECT_THAT(value_of("tp + tp"), HasSubstr("too large for 64 bits"));
  EXPECT_THAT(value_of("-tp - tp - tp"), HasSubstr("too large for 64 bits"));
  EXPECT_THAT(value_of("1e308 * 10"), HasSubstr("too large for 64 bits"));
  EXPECT_THAT(value_of("ceil(1e300)"), HasSubstr("too large for 64 bits"));
  set("pp", -1);
  set("tp", std::numeric_limits<i64>::min());
  EXPECT_THAT(value_of("tp / pp"), HasSubstr("too large for 64 bits"));
  EXPECT_THAT(value_of("tp // pp"), HasSubstr("too large for 64 bits"));
  EXPECT_THAT(value_of("tp % pp"), HasSubstr("too large for 64 bits"));
  EXPECT_THAT(value_of("-tp"), HasSubstr("too large for 64 bits"));
}

TEST_F(ExpressionTest, ErrorsPointIntoTheTextAndSayWhatWouldBeRight) {
  EXPECT_THAT(value_of("tp <= gpus_per_nod"),
              testing::AllOf(HasSubstr("at 6: "), HasSubstr("did you mean 'gpus_per_node'?")));
  EXPECT_THAT(value_of("tp == 8 and precision == \"bf166\""),
              testing::AllOf(HasSubstr("at 25: "), HasSubstr("did you mean 'bf16'?")));
  EXPECT_THAT(value_of("tp = 8"), testing::AllOf(HasSubstr("at 3: "), HasSubstr("write '=='")));
  EXPECT_THAT(value_of("tp > 1 && pp > 1"), HasSubstr("write 'and'"));
  EXPECT_THAT(value_of("tp > 1 || pp > 1"), HasSubstr("write 'or'"));
  EXPECT_THAT(value_of("2 ** 3"), HasSubstr("multiply instead"));
  EXPECT_THAT(value_of("!packing"), HasSubstr("write 'not'"));
  EXPECT_THAT(value_of("tp +"), HasSubstr("at 4: the expression ends"));
  EXPECT_THAT(value_of("(tp"), HasSubstr("')' was expected"));
  EXPECT_THAT(value_of("tp 8"), HasSubstr("at 3: an operator or the end was expected"));
  EXPECT_THAT(value_of(""), HasSubstr("empty"));
  EXPECT_THAT(value_of("min(tp)"), HasSubstr("two values or more"));
  EXPECT_THAT(value_of("mim(tp, 2)"), HasSubstr("did you mean 'min'?"));
  EXPECT_THAT(value_of("'abc"), HasSubstr("not closed"));
  EXPECT_THAT(value_of("12ab"), HasSubstr("not a number"));
  EXPECT_THAT(value_of("99999999999999999999"), HasSubstr("too large"));
  EXPECT_THAT(value_of("1e999"), HasSubstr("too large"));
  EXPECT_THAT(value_of("tp \xC3\xA9"), HasSubstr("outside ASCII"));
}

TEST_F(ExpressionTest, TypesAreCheckedWhereTheyMeet) {
  EXPECT_THAT(value_of("tp == \"8\""), HasSubstr("compares a whole number with a word"));
  EXPECT_THAT(value_of("precision < \"z\""), HasSubstr("only == and !="));
  EXPECT_THAT(value_of("tp and pp"), HasSubstr("'and' takes true or false"));
  EXPECT_THAT(value_of("not tp"), HasSubstr("'not' takes true or false"));
  EXPECT_THAT(value_of("packing + 1"), HasSubstr("takes numbers"));
  EXPECT_THAT(value_of("1.5 // 2"), HasSubstr("whole numbers"));
  EXPECT_THAT(value_of("ceil(packing)"), HasSubstr("takes numbers"));
}

TEST_F(ExpressionTest, DeepAndLongTextsAreRefused) {
  const std::string deep(kMaxDepth, '(');
  EXPECT_EQ(value_of(deep + "1" + std::string(kMaxDepth, ')')), "1");
  EXPECT_THAT(value_of(deep + "(1)" + std::string(kMaxDepth, ')')), HasSubstr("nested deeper"));
  EXPECT_THAT(value_of(std::string(2000, '-') + "1"), HasSubstr("nested deeper"));
  EXPECT_THAT(value_of(std::string(kMaxExpressionBytes + 1, ' ')), HasSubstr("at most 4096"));
  std::string chain = "true";  // each item of a list evaluates what stands before `in` again
  for (int i = 0; i < 40; ++i) chain = "(" + chain + ") in [true, true, true]";
  EXPECT_THAT(value_of(chain), HasSubstr("needs more than 4096 steps"));
}

TEST_F(ExpressionTest, TheDeepestStackStaysWithinItsBounds) {
  std::string text = "1";
  for (int i = 0; i < kMaxDepth; ++i) text = "1 + 2 * max(3, " + text + ")";
  EXPECT_THAT(value_of(text), testing::Not(HasSubstr("at ")));
}

}  // namespace
}  // namespace sweep::grid
