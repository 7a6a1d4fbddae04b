#include "orchestrator/store/packed_column.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace sweep::store {
namespace {

static_assert(std::endian::native == std::endian::little, "packed columns are read as they lie in memory");

constexpr i64 kNoInteger = std::numeric_limits<i64>::min();
constexpr std::size_t kFewWords = 256;  // up to here codes are one byte, and always smaller than the values

template <class T>
void put_bytes(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T bytes_at(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void put_word(std::string& out, const Value& value) {
  out += static_cast<char>(value.index());
  if (const auto* whole = std::get_if<i64>(&value)) put_bytes(out, *whole);
  if (const auto* real = std::get_if<double>(&value)) put_bytes(out, *real);
  if (const auto* text = std::get_if<std::string>(&value)) {
    put_bytes(out, static_cast<std::uint32_t>(text->size()));
    out += *text;
  }
}

void put_codes(std::string& out, const std::vector<std::uint32_t>& codes, std::size_t words) {
  const std::uint8_t width = words == 1 ? 0 : words <= kFewWords ? 1 : words <= 65536 ? 2 : 4;
  out += static_cast<char>(width);
  for (const std::uint32_t code : codes) out.append(reinterpret_cast<const char*>(&code), width);
}

// 'i' or 'r' where every value is of that kind or NULL; else 'd'.
char raw_form(std::span<const Value> values) {
  bool whole = true, real = true;
  for (const Value& value : values) {
    const auto* integer = std::get_if<i64>(&value);
    whole = whole && (value.index() == 0 || (integer && *integer != kNoInteger));
    real = real && (value.index() == 0 || std::holds_alternative<double>(value));
  }
  return whole ? 'i' : real ? 'r' : 'd';
}

// Reads forward; whatever it hands out after it ran over the end is zero, and `fine` says so.
struct Reader {
  std::string_view rest;
  bool fine = true;

  std::string_view take(std::size_t bytes) {
    if (bytes > rest.size()) {
      fine = false;
      rest = {};
      return {};
    }
    const auto out = rest.substr(0, bytes);
    rest.remove_prefix(bytes);
    return out;
  }
  template <class T>
  T number() {
    const auto bytes = take(sizeof(T));
    return fine ? bytes_at<T>(bytes.data()) : T{};
  }
  ColumnValue word() {
    switch (number<std::uint8_t>()) {
      case 0:
        return {};
      case 1:
        return number<i64>();
      case 2:
        return number<double>();
      case 3:
        return take(number<std::uint32_t>());
      default:
        fine = false;
        return {};
    }
  }
};

}  // namespace

Value value_of(const ColumnValue& word) {
  if (const auto* whole = std::get_if<i64>(&word)) return *whole;
  if (const auto* real = std::get_if<double>(&word)) return *real;
  if (const auto* text = std::get_if<std::string_view>(&word)) return std::string(*text);
  return {};
}

std::string pack_column(std::span<const Value> values) {
  std::string out;
  put_bytes(out, static_cast<std::uint32_t>(values.size()));
  std::unordered_map<Value, std::uint32_t> seen;
  std::vector<const Value*> words;
  std::vector<std::uint32_t> codes;
  codes.reserve(values.size());
  for (const Value& value : values) {
    if (!words.empty() && value == *words[codes.back()]) {  // runs of one value are the usual case
      codes.push_back(codes.back());
      continue;
    }
    const auto [it, added] = seen.try_emplace(value, static_cast<std::uint32_t>(words.size()));
    if (added) words.push_back(&it->first);
    codes.push_back(it->second);
  }
  const char form = words.size() > kFewWords && words.size() > values.size() / 4 ? raw_form(values) : 'd';
  out += form;
  if (form == 'd') {
    put_bytes(out, static_cast<std::uint32_t>(words.size()));
    for (const Value* word : words) put_word(out, *word);
    put_codes(out, codes, words.size());
    return out;
  }
  for (const Value& value : values) {
    if (form == 'i') {
      const auto* whole = std::get_if<i64>(&value);
      put_bytes(out, whole ? *whole : kNoInteger);
    } else {
      const auto* real = std::get_if<double>(&value);
      put_bytes(out, real ? *real : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return out;
}

std::optional<PackedColumn> PackedColumn::parse(std::string_view bytes) {
  Reader in{bytes};
  PackedColumn out;
  out.count_ = in.number<std::uint32_t>();
  out.form_ = static_cast<char>(in.number<std::uint8_t>());
  out.width_ = sizeof(i64);
  if (out.form_ == 'd') {
    const auto words = in.number<std::uint32_t>();
    if (words > in.rest.size()) return std::nullopt;
    out.words_.reserve(words);
    for (std::uint32_t i = 0; i < words && in.fine; ++i) out.words_.push_back(in.word());
    out.width_ = in.number<std::uint8_t>();
    if (out.width_ == 3 || out.width_ > 4) return std::nullopt;
  } else if (out.form_ != 'i' && out.form_ != 'r') {
    return std::nullopt;
  }
  out.rows_ = in.rest.data();
  if (!in.fine || in.rest.size() != out.count_ * out.width_) return std::nullopt;
  if (out.form_ == 'd' && !out.has_words_for_all()) return std::nullopt;
  return out;
}

bool PackedColumn::has_words_for_all() const {
  const std::size_t words = words_.size();
  if (width_ == 0) return count_ == 0 || words > 0;
  if (width_ == 1 && words == kFewWords) return true;
  for (std::size_t row = 0; row < count_; ++row)
    if (code(row) >= words) return false;
  return true;
}

std::uint32_t PackedColumn::code(std::size_t row) const {
  switch (width_) {
    case 1:
      return bytes_at<std::uint8_t>(rows_ + row);
    case 2:
      return bytes_at<std::uint16_t>(rows_ + 2 * row);
    case 4:
      return bytes_at<std::uint32_t>(rows_ + 4 * row);
    default:
      return 0;
  }
}

ColumnValue PackedColumn::at(std::size_t row) const {
  if (form_ == 'd') return words_[code(row)];
  if (form_ == 'i') {
    const auto whole = bytes_at<i64>(rows_ + 8 * row);
    return whole == kNoInteger ? ColumnValue{} : ColumnValue{whole};
  }
  const auto real = bytes_at<double>(rows_ + 8 * row);
  return std::isnan(real) ? ColumnValue{} : ColumnValue{real};
}

}  // namespace sweep::store
