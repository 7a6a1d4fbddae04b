#include "base/utf8.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

TEST(Utf8, TerminalEscapesAndBadBytesDoNotReachTheTerminal) {
  EXPECT_EQ(safe_text("a\x1b[31mb\r\nc"), "a [31mb  c");
  EXPECT_EQ(safe_text("x\xff\xc0\x80y"), "x\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDy");
  EXPECT_EQ(safe_text("\xE2\x80\xAE"
                      "abc"),
            " abc");  // right-to-left override
  EXPECT_EQ(safe_text("grün 模型"), "grün 模型");
  EXPECT_EQ(safe_text("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
}

}  // namespace
}  // namespace sweep
