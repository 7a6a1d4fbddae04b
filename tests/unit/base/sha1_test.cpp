#include "base/sha1.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace sweep {
namespace {

std::string hex(std::string_view message) {
  std::string out;
  for (const std::uint8_t byte : sha1(message)) out += fmt::format("{:02x}", byte);
  return out;
}

// The examples of NIST for FIPS 180-4, and RFC 3174's.
TEST(Sha1, PublishedExamples) {
  EXPECT_EQ(hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(hex(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

// As coreutils' sha1sum says: the length fits into the block that the message ends in, and into one more.
TEST(Sha1, EndsOfBlocks) {
  EXPECT_EQ(hex(std::string(55, 'x')), "cef734ba81a024479e09eb5a75b6ddae62e6abf1");
  EXPECT_EQ(hex(std::string(56, 'x')), "901305367c259952f4e7af8323f480d59f81335b");
  EXPECT_EQ(hex(std::string(63, 'x')), "0ddc4e0cccd9a12850deb5abb0853a4425559fec");
  EXPECT_EQ(hex(std::string(64, 'x')), "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163");
}

}  // namespace
}  // namespace sweep
