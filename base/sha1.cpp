#include "base/sha1.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace sweep {
namespace {

constexpr std::size_t kBlock = 64, kLength = 8;

using Words = std::array<std::uint32_t, 5>;

std::uint32_t word_at(const char* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | static_cast<unsigned char>(bytes[i]);
  return word;
}

void add_block(const char* block, Words& state) {
  std::array<std::uint32_t, 80> w;
  for (std::size_t i = 0; i < 16; ++i) w[i] = word_at(block + 4 * i);
  for (std::size_t i = 16; i < w.size(); ++i)
    w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
  const auto rounds = [&](std::size_t from, std::uint32_t constant, auto mixed) {
    for (std::size_t i = from; i < from + 20; ++i) {
      const std::uint32_t next = std::rotl(a, 5) + mixed(b, c, d) + e + constant + w[i];
      e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
    }
  };
  using Word = std::uint32_t;
  const auto parity = [](Word x, Word y, Word z) { return x ^ y ^ z; };
  rounds(0, 0x5a827999, [](Word x, Word y, Word z) { return (x & y) | (~x & z); });
  rounds(20, 0x6ed9eba1, parity);
  rounds(40, 0x8f1bbcdc, [](Word x, Word y, Word z) { return (x & y) | (x & z) | (y & z); });
  rounds(60, 0xca62c1d6, parity);
  state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

}  // namespace

std::array<std::uint8_t, 20> sha1(std::string_view message) {
  Words state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::string_view rest = message;
  for (; rest.size() >= kBlock; rest.remove_prefix(kBlock)) add_block(rest.data(), state);
  // The end: a bit 1, zeros, and the message's length in bits.
  std::array<char, 2 * kBlock> end{};
  std::ranges::copy(rest, end.begin());
  end[rest.size()] = static_cast<char>(0x80);
  const std::size_t size = rest.size() + 1 + kLength <= kBlock ? kBlock : 2 * kBlock;
  const std::uint64_t bits = 8 * std::uint64_t{message.size()};
  for (std::size_t i = 0; i < kLength; ++i) end[size - 1 - i] = static_cast<char>(bits >> (8 * i));
  for (std::size_t at = 0; at < size; at += kBlock) add_block(end.data() + at, state);
  std::array<std::uint8_t, 20> digest;
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

}  // namespace sweep
