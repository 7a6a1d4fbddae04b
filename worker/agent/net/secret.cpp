#include "worker/agent/net/secret.h"

#include <fmt/format.h>
#include <sodium.h>

#include <stdexcept>

namespace sweep::agent {
namespace {

void ready() {
  if (sodium_init() < 0) throw std::runtime_error("libsodium finds no source of random bytes");
}

template <std::size_t N>
std::string to_hex(const std::array<unsigned char, N>& bytes) {
  std::array<char, 2 * N + 1> text{};
  sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  return text.data();
}

}  // namespace

Secret Secret::random() {
  ready();
  Secret out;
  randombytes_buf(out.bytes_.data(), out.bytes_.size());
  return out;
}

std::optional<Secret> Secret::from_hex(std::string_view hex) {
  ready();
  Secret out;
  std::size_t length = 0;
  const char* end = nullptr;
  const bool read = sodium_hex2bin(out.bytes_.data(), out.bytes_.size(), hex.data(), hex.size(), nullptr,
                                   &length, &end) == 0;
  if (!read || length != out.bytes_.size() || end != hex.data() + hex.size()) return std::nullopt;
  return out;
}

Secret::~Secret() {
  sodium_memzero(bytes_.data(), bytes_.size());
}

std::string Secret::hex() const {
  return to_hex(bytes_);
}

std::string Secret::proof(std::string_view role, std::string_view theirs, std::string_view ours) const {
  const std::string said = fmt::format("sweep-agent 1|{}|{}|{}", role, theirs, ours);
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> mac{};
  crypto_auth_hmacsha256(mac.data(), reinterpret_cast<const unsigned char*>(said.data()), said.size(),
                         bytes_.data());
  return to_hex(mac);
}

bool Secret::proven(std::string_view role, std::string_view ours, std::string_view theirs,
                    std::string_view claimed) const {
  const std::string right = proof(role, ours, theirs);
  return claimed.size() == right.size() && sodium_memcmp(claimed.data(), right.data(), right.size()) == 0;
}

std::string new_challenge() {
  ready();
  std::array<unsigned char, 32> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  return to_hex(bytes);
}

}  // namespace sweep::agent
