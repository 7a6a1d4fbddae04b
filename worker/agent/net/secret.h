// Secret: the random token that every connection between the agents of an allocation must prove, and the
// proof: each side sends a fresh challenge and answers the other's with an HMAC-SHA256 of both, so that the
// token itself never travels over the network and an old proof is worth nothing. The head agent makes it; it
// is handed over on standard input only, never in arguments, environment, scripts, logs or files. Home of
// libsodium.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sweep::agent {

class Secret {
 public:
  static Secret random();
  // None: it is not 64 hexadecimal digits.
  static std::optional<Secret> from_hex(std::string_view hex);
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  // Wiped.
  ~Secret();
  std::string hex() const;

  // The answer of `role` ("head" or "node") to the challenge `theirs`, after it has sent `ours`.
  std::string proof(std::string_view role, std::string_view theirs, std::string_view ours) const;
  // Whether the other side's proof is right; takes the same time whatever is wrong with it.
  bool proven(std::string_view role, std::string_view ours, std::string_view theirs,
              std::string_view claimed) const;

 private:
  Secret() = default;
  std::array<unsigned char, 32> bytes_{};
};

std::string new_challenge();  // 64 random hexadecimal digits

}  // namespace sweep::agent
