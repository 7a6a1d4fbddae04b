#include "orchestrator/grid/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_matchers.h"

namespace sweep::grid {
namespace {

// tp 8, pp 3, nodes 2, global_batch_size 256, precision bf16, packing true; everything else 1.
class ExpressionTest : public ::testing::Test {
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
    const auto code = parse(text, scope_);
    if (!code) return "at " + std::to_string(code.error().at) + ": " + code.error().message;
    Cell value{0};
    Failure failure;
    if (!evaluate(*code, point_, value, failure)) return explain(failure, *code, scope_, point_);
    return value_text(value, code->type(), scope_.words);
  }

  // Why a text that compiles has no value.
  EvalError trouble_of(std::string_view text) {
    const auto code = parse(text, scope_);
    EXPECT_TRUE(code) << text;
    Cell value{0};
    Failure failure;
    return code && !evaluate(*code, point_, value, failure) ? failure.trouble : EvalError::kNone;
  }

  // Why a text does not compile. Column: the byte of the text, from 1.
  Error error_of(std::string_view text) {
    const auto code = parse(text, scope_);
    EXPECT_FALSE(code) << text;
    if (code) return {};
    const ExpressionError& e = code.error();
    return {e.message, e.kind, e.subject, "", 1, static_cast<int>(e.at) + 1};
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
  EXPECT_EQ(trouble_of("tp % (pp - 3)"), EvalError::kDivisionByZero);
  EXPECT_EQ(trouble_of("tp / 0.0"), EvalError::kDivisionByZero);
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
  EXPECT_EQ(trouble_of("tp * 4"), EvalError::kOverflow);
  EXPECT_EQ(trouble_of("tp + tp"), EvalError::kOverflow);
  EXPECT_EQ(trouble_of("-tp - tp - tp"), EvalError::kOverflow);
  EXPECT_EQ(trouble_of("1e308 * 10"), EvalError::kOverflow);
  EXPECT_EQ(trouble_of("ceil(1e300)"), EvalError::kOverflow);
  set("pp", -1);
  set("tp", std::numeric_limits<i64>::min());
  EXPECT_EQ(trouble_of("tp / pp"), EvalError::kOverflow);
  EXPECT_EQ(trouble_of("tp // pp"), EvalError::kOverflow);
  EXPECT_EQ(trouble_of("tp % pp"), EvalError::kOverflow);
  EXPECT_EQ(trouble_of("-tp"), EvalError::kOverflow);
}

TEST_F(ExpressionTest, ErrorsHaveACodeAndAPlaceInTheText) {
  EXPECT_THAT(error_of("tp <= gpus_per_nod"),
              AllOf(At(1, 7), IsError(ErrorKind::kUnknownName, "gpus_per_nod"), Suggests("gpus_per_node")));
  EXPECT_THAT(error_of("tp == 8 and precision == \"bf166\""),
              AllOf(At(1, 26), IsError(ErrorKind::kInvalidValue, "bf166"), Suggests("bf16")));
  EXPECT_THAT(error_of("tp = 8"), AllOf(At(1, 4), IsError(ErrorKind::kInvalidValue, "=")));
  EXPECT_THAT(error_of("tp > 1 && pp > 1"), AllOf(At(1, 8), IsError(ErrorKind::kInvalidValue, "&&")));
  EXPECT_THAT(error_of("tp > 1 || pp > 1"), AllOf(At(1, 8), IsError(ErrorKind::kInvalidValue, "||")));
  EXPECT_THAT(error_of("2 ** 3"), AllOf(At(1, 3), IsError(ErrorKind::kInvalidValue, "**")));
  EXPECT_THAT(error_of("!packing"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "!")));
  EXPECT_THAT(error_of("tp +"), AllOf(At(1, 5), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("(tp"), AllOf(At(1, 4), IsError(ErrorKind::kInvalidValue, "(")));
  EXPECT_THAT(error_of("tp 8"), AllOf(At(1, 4), IsError(ErrorKind::kInvalidValue, "8")));
  EXPECT_THAT(error_of(""), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("min(tp)"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "min")));
  EXPECT_THAT(error_of("mim(tp, 2)"),
              AllOf(At(1, 1), IsError(ErrorKind::kUnknownName, "mim"), Suggests("min")));
  EXPECT_THAT(error_of("'abc"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("12ab"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "12ab")));
  EXPECT_THAT(error_of("99999999999999999999"),
              AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "99999999999999999999")));
  EXPECT_THAT(error_of("1e999"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "1e999")));
  EXPECT_THAT(error_of("tp \xC3\xA9"), AllOf(At(1, 4), IsError(ErrorKind::kInvalidValue)));
}

TEST_F(ExpressionTest, TypesAreCheckedWhereTheyMeet) {
  EXPECT_THAT(error_of("tp == \"8\""), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "tp == \"8\"")));
  EXPECT_THAT(error_of("precision < \"z\""),
              AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "precision < \"z\"")));
  EXPECT_THAT(error_of("tp and pp"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "tp")));
  EXPECT_THAT(error_of("not tp"), AllOf(At(1, 5), IsError(ErrorKind::kInvalidValue, "tp")));
  EXPECT_THAT(error_of("packing + 1"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "packing")));
  EXPECT_THAT(error_of("1.5 // 2"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "1.5 // 2")));
  EXPECT_THAT(error_of("ceil(packing)"), AllOf(At(1, 6), IsError(ErrorKind::kInvalidValue, "packing")));
}

TEST_F(ExpressionTest, DeepAndLongTextsAreRefused) {
  const std::string deep(kMaxDepth, '(');
  EXPECT_EQ(value_of(deep + "1" + std::string(kMaxDepth, ')')), "1");
  EXPECT_THAT(error_of(deep + "(1)" + std::string(kMaxDepth, ')')),
              AllOf(At(1, 66), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of(std::string(2000, '-') + "1"), AllOf(At(1, 66), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of(std::string(kMaxExpressionBytes + 1, ' ')),
              AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue)));
}

// The left side of `in` is evaluated once, however many items there are; 3^40 times would not end.
TEST_F(ExpressionTest, ListsInListsAreNoMoreWorkThanTheirText) {
  std::string chain = "true";
  for (int i = 0; i < 40; ++i) chain = "(" + chain + ") in [false, false, true]";
  EXPECT_EQ(value_of(chain), "true");
  std::string middle = "true";
  for (int i = 0; i < 40; ++i) middle = "true == (" + middle + ") == true";
  EXPECT_EQ(value_of(middle), "true");
}

TEST_F(ExpressionTest, TheLongestChainsStayWithinTheStack) {
  std::string sums = "0", items = "tp in [0", links = "0";
  while (sums.size() + 2 <= kMaxExpressionBytes) sums += "+1";
  while (items.size() + 3 <= kMaxExpressionBytes) items += ",0";
  while (links.size() + 2 <= kMaxExpressionBytes) links += "<1";
  EXPECT_EQ(value_of(sums), "2047");
  EXPECT_EQ(value_of(items + "]"), "false");
  EXPECT_EQ(value_of(links), "false");
  std::string nested = "1";
  for (int i = 0; i < kMaxDepth; ++i) nested = "1 + 2 * max(3, " + nested + ")";
  EXPECT_EQ(trouble_of(nested), EvalError::kOverflow);
}

TEST_F(ExpressionTest, AWordMayStandBeforeTheNameItIsComparedWith) {
  set("schedule", scope_.words.id("gpipe"));
  EXPECT_EQ(value_of("'gpipe' in [schedule]"), "true");
  EXPECT_EQ(value_of("'fp32' in [precision, 'bf16']"), "false");
  EXPECT_EQ(value_of("'bf16' in ['fp32', precision]"), "true");
  EXPECT_EQ(value_of("'gpipe' == schedule != '1f1b'"), "true");
  EXPECT_THAT(error_of("'bf61' in [precision]"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "bf61")));
}

// The first of two errors is reported.
TEST_F(ExpressionTest, TheFirstErrorIsTheOneThatIsTold) {
  EXPECT_THAT(error_of("tp and )"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue, "tp")));
  EXPECT_THAT(error_of("packing + )"), AllOf(At(1, 11), IsError(ErrorKind::kInvalidValue, ")")));
  EXPECT_THAT(error_of("min(packing"), AllOf(At(1, 5), IsError(ErrorKind::kInvalidValue, "packing")));
  EXPECT_THAT(error_of("max(foo"), AllOf(At(1, 5), IsError(ErrorKind::kUnknownName, "foo")));
  EXPECT_THAT(error_of("tp in [packing, foo"), AllOf(At(1, 1), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("ceil(tp"), AllOf(At(1, 8), IsError(ErrorKind::kInvalidValue, "(")));
  EXPECT_THAT(error_of("not ("), AllOf(At(1, 6), IsError(ErrorKind::kInvalidValue)));
}

// An inexact quotient is told with the part of the text that it is, and with that alone.
TEST_F(ExpressionTest, TheTroubleIsWhereItIs) {
  EXPECT_EQ(value_of("tp == 8 and (nodes + 1) / (tp - 1) in [1, 2]"),
            "(nodes + 1) / (tp - 1) = (2 + 1) / (8 - 1) = 0.43 is not whole");
  EXPECT_EQ(value_of("1 + ceil((tp / (pp - 3)))"),
            "ceil((tp / (pp - 3))) = ceil((8 / (3 - 3))) divides by zero");
  EXPECT_EQ(value_of("0 < tp < pp / 2"), "pp / 2 = 3 / 2 = 1.50 is not whole");
}

}  // namespace
}  // namespace sweep::grid
