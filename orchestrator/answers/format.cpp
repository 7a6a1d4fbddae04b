#include "orchestrator/answers/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace sweep::answers {
namespace {

// Halves up and away from zero, as JavaScript's toFixed does, so that a page and a terminal show the same
// digits.
std::string fixed(double value, int decimals) {
  static constexpr std::array<double, 6> kPower = {1, 10, 100, 1e3, 1e4, 1e5};
  const double scaled = value * kPower[decimals];
  const bool exact = std::fma(value, kPower[decimals], -scaled) == 0;
  if (exact && scaled - std::floor(scaled) == 0.5) value = (std::floor(scaled) + 1) / kPower[decimals];
  return fmt::format("{:.{}f}", value, decimals);
}

std::string scientific(double value) {  // 1.23e-5, without the padding zero of printf
  std::string out = fmt::format("{:.2e}", value);
  const auto e = out.find('e');
  if (e != std::string::npos && e + 2 < out.size() && out[e + 2] == '0') out.erase(e + 2, 1);
  return out;
}

std::size_t columns_of(std::uint32_t code) {
  struct Range {
    std::uint32_t first, last;
  };
  static constexpr Range kZero[] = {{0x300, 0x36F}, {0x200B, 0x200F}, {0xFE00, 0xFE0F}};
  static constexpr Range kWide[] = {{0x1100, 0x115F},   {0x2E80, 0xA4CF},  {0xAC00, 0xD7A3},
                                    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},  {0xFF00, 0xFF60},
                                    {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  const auto in = [code](const Range& r) { return code >= r.first && code <= r.last; };
  if (std::any_of(std::begin(kZero), std::end(kZero), in)) return 0;
  return std::any_of(std::begin(kWide), std::end(kWide), in) ? 2 : 1;
}

}  // namespace

std::string significant(double value) {
  if (!std::isfinite(value)) return "-";
  const double a = std::fabs(value);
  if (a == 0) return "0";
  const std::string sign = value < 0 ? "-" : "";
  if (a >= 1e15 || a < 1e-3) return sign + scientific(a);
  const int decimals = a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : a >= 0.1 ? 3 : a >= 0.01 ? 4 : 5;
  return sign + fixed(a, decimals);
}

std::string si(double value) {
  static constexpr std::string_view kSuffix[] = {"", "k", "M", "G", "T", "P"};
  std::size_t step = 0;
  while (std::isfinite(value) && std::fabs(value) >= 1000 && step + 1 < std::size(kSuffix)) {
    value /= 1000;
    ++step;
  }
  return significant(value) + std::string(kSuffix[step]);
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds < 0.1) return "under 0.1 s";
  if (seconds < 10 && seconds != std::floor(seconds)) return significant(seconds) + " s";
  const auto s = static_cast<i64>(std::min(seconds + 0.5, 9e15));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
  return fmt::format("{} d {} h", s / 86400, s % 86400 / 3600);
}

std::string signed_percent(double share) {
  const std::string out = fmt::format("{:+.1f} %", share * 100);
  return out.substr(1) == "0.0 %" ? out.substr(1) : out;
}

std::string rough_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  return seconds < 1 ? "less than 1 s" : duration(std::max(1.0, std::round(seconds)));
}

std::string rough_hours(double hours) {
  if (!std::isfinite(hours) || hours < 0) return "-";
  if (hours < 0.005) return "less than 0.01";
  return fixed(hours, hours < 1 ? 2 : hours < 10 ? 1 : 0);
}

Scale scale_for(std::string_view unit, double largest) {
  if (unit == "bytes") {
    if (largest >= double(1 << 30)) return {1.0 / double(1 << 30), "GiB", false};
    if (largest >= double(1 << 20)) return {1.0 / double(1 << 20), "MiB", false};
    return largest >= 1024 ? Scale{1.0 / 1024, "KiB", false} : Scale{1, "B", false};
  }
  if (unit == "fraction") return {100, "%", false};
  if (unit == "tokens/s" || unit == "FLOP/s") return {1, std::string(unit), true};
  return {1, std::string(unit), false};
}

std::string show(const Value& value, const Scale& scale) {
  if (const auto* v = std::get_if<double>(&value)) return scale(*v);
  if (const auto* v = std::get_if<i64>(&value)) {
    return scale.factor == 1 && !scale.suffix ? std::to_string(*v) : scale(static_cast<double>(*v));
  }
  return show(value);
}

std::string rounded(const Value& value) {
  const auto* v = std::get_if<double>(&value);
  return v && std::isfinite(*v) ? fmt::format("{:.6g}", *v) : show(value);
}

std::string show(const Value& value) {
  if (const auto* v = std::get_if<double>(&value)) return std::isfinite(*v) ? fmt::format("{}", *v) : "-";
  if (const auto* v = std::get_if<i64>(&value)) return std::to_string(*v);
  if (const auto* v = std::get_if<std::string>(&value)) return safe_text(*v);
  return "-";
}

Value cell_of(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Value{*value} : Value{};
}

std::string safe_lines(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += safe_text(text.substr(at, end - at));
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

std::size_t display_width(std::string_view s) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < s.size();) {
    const CodePoint d = decode_utf8(s, at);
    width += d.length == 0 ? 1 : columns_of(d.code);
    at += std::max<std::size_t>(d.length, 1);
  }
  return width;
}

std::string fit(std::string_view s, std::size_t columns) {
  if (display_width(s) <= columns) return std::string(s);
  std::size_t width = 0, at = 0;
  while (at < s.size()) {
    const CodePoint d = decode_utf8(s, at);
    const std::size_t next = width + (d.length == 0 ? 1 : columns_of(d.code));
    if (next + 1 > columns) break;
    width = next;
    at += std::max<std::size_t>(d.length, 1);
  }
  return columns == 0 ? std::string() : std::string(s.substr(0, at)) + "…";
}

std::string escape_xml(std::string_view raw) {
  std::string out;
  for (const char c : safe_text(raw)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      while (i < a.size() && a[i] == '0') ++i;
      while (j < b.size() && b[j] == '0') ++j;
      const std::size_t from_a = i, from_b = j;
      while (i < a.size() && digit(a[i])) ++i;
      while (j < b.size() && digit(b[j])) ++j;
      const auto x = a.substr(from_a, i - from_a), y = b.substr(from_b, j - from_b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i, ++j;
    }
  }
  if ((i == a.size()) != (j == b.size())) return i == a.size();
  return a < b;  // equal but for leading zeros
}

bool value_less(const Value& a, const Value& b) {
  const auto kind = [](const Value& v) { return v.index() == 0 ? 0 : v.index() == 3 ? 2 : 1; };
  if (kind(a) != kind(b)) return kind(a) < kind(b);
  if (kind(a) == 1) return *number(a) < *number(b);
  return kind(a) == 2 && natural_less(std::get<std::string>(a), std::get<std::string>(b));
}

bool ValuesLess::operator()(const std::vector<Value>& a, const std::vector<Value>& b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), value_less);
}

}  // namespace sweep::answers
