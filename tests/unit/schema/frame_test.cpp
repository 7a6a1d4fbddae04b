// Frames: whole or in pieces, and what is refused before it is kept.
#include "schema/frame.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

TEST(Frame, ComesBackWholeHoweverItIsCut) {
  const Frame first{{{"kind", "store"}, {"n", 7}}, std::string("\0\xff raw", 6)}, second{{{"beat", 1}}, ""};
  const std::string bytes = encode(first) + encode(second);
  for (std::size_t piece = 1; piece <= bytes.size(); piece += 3) {
    FrameReader reader(1 << 20);
    std::vector<Frame> got;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.feed(std::string_view(bytes).substr(at, piece));
      for (auto frame = reader.next(); frame && *frame; frame = reader.next()) got.push_back(**frame);
    }
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].head, first.head);
    EXPECT_EQ(got[0].blob, first.blob);
    EXPECT_EQ(got[1].head, second.head);
  }
}

TEST(Frame, OversizedIsRefusedByItsLengthsAlone) {
  FrameReader reader(64);
  reader.feed(std::string("\x00\x00\x00\x20\x00\x00\x00\x21", 8));  // 32 + 33 bytes, none of them sent yet
  EXPECT_FALSE(reader.next());
  FrameReader wrapping(64);
  wrapping.feed(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8));
  EXPECT_FALSE(wrapping.next());
}

TEST(Frame, WhatIsNoObjectIsRefused) {
  for (const std::string text : {"[1]", "nonsense", "1", ""}) {
    FrameReader reader(1024);
    std::string bytes(8, '\0');
    bytes[3] = static_cast<char>(text.size());
    reader.feed(bytes + text);
    EXPECT_FALSE(reader.next()) << text;
  }
}

TEST(Frame, MembersOfAnotherTypeCountAsAbsent) {
  const nlohmann::json odd = {{"text", 1}, {"number", "1"}, {"flag", "true"}};
  EXPECT_EQ(text_of(odd, "text"), "");
  EXPECT_EQ(integer_of(odd, "number"), 0);
  EXPECT_FALSE(flag_of(odd, "flag"));
  EXPECT_EQ(text_of(odd, "none"), "");
}

}  // namespace
}  // namespace sweep
