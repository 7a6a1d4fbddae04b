#include "base/template.h"

#include <gtest/gtest.h>

namespace sweep::templates {
namespace {

const ValueOf kValues = [](std::string_view name) -> std::optional<std::string> {
  if (name == "lr") return "1e-4";
  if (name == "odd") return "{x}";
  return std::nullopt;
};

TEST(Template, FinishPutsValuesInAndUndoublesBraces) {
  EXPECT_EQ(finish("--lr {lr} {{{lr}}}", kValues).value(), "--lr 1e-4 {1e-4}");
  EXPECT_EQ(finish("", kValues).value(), "");
  EXPECT_EQ(finish("{odd}", kValues).value(), "{x}");
}

TEST(Template, FillLeavesATemplate) {
  EXPECT_EQ(fill("{lr} {files} {{a}}", kValues).value(), "1e-4 {files} {{a}}");
  // A value with braces is text for the second call too.
  EXPECT_EQ(finish(fill("{odd}", kValues).value(), kValues).value(), "{x}");
}

TEST(Template, ANameWithoutAValueIsRefusedAtTheEnd) {
  EXPECT_FALSE(finish("{files}", kValues));
}

TEST(Template, LoneBracesAndOddNamesAreRefused) {
  for (const char* text : {"{", "}", "a}b", "{}", "{a b}", "{lr", "{{}", "{a-b}"})
    EXPECT_FALSE(names_in(text)) << text;
}

TEST(Template, NamesAreListedInOrder) {
  EXPECT_EQ(names_in("{b} {{c}} {a}{b}").value(), (std::vector<std::string>{"b", "a", "b"}));
}

}  // namespace
}  // namespace sweep::templates
