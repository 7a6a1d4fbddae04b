#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/number_in.h"

namespace sweep {

std::string human_bytes(double bytes) {
  constexpr double kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;
  if (bytes >= kGiB) return fmt::format("{:.1f} GiB", bytes / kGiB);
  if (bytes >= kMiB) return fmt::format("{:.1f} MiB", bytes / kMiB);
  return fmt::format("{:.1f} KiB", bytes / kKiB);
}

std::string counted(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string shell_word(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           std::string_view("-./:,@%+=").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_plain_name(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

namespace {

std::optional<int> six_digits(std::string_view text) {
  const auto value = number_in<int>(text);
  return text.size() <= 6 && value.value_or(-1) >= 0 ? value : std::nullopt;
}

}  // namespace

std::optional<double> limit_seconds(std::string_view text) {
  std::optional<int> days;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    days = six_digits(text.substr(0, dash));
    if (!days) return std::nullopt;
    text.remove_prefix(dash + 1);
  }
  std::vector<int> parts;
  for (bool more = true; more;) {
    const auto colon = text.find(':');
    const auto part = six_digits(text.substr(0, colon));
    // Only the first part counts on: 90 minutes are "90:00", and "00:90:00" is a slip.
    if (!part || parts.size() == 3 || (!parts.empty() && *part > 59)) return std::nullopt;
    parts.push_back(*part);
    more = colon != std::string_view::npos;
    if (more) text.remove_prefix(colon + 1);
  }
  if (days && parts[0] > 23) return std::nullopt;
  if (!days && parts.size() < 3) parts.insert(parts.begin(), 0);  // no hours
  parts.resize(3, 0);
  return days.value_or(0) * 86400.0 + parts[0] * 3600.0 + parts[1] * 60 + parts[2];
}

}  // namespace sweep
