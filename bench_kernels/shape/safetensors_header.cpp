#include "bench_kernels/shape/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/fail.h"

namespace sweep::shape {

namespace {

constexpr std::size_t kMaxDimensions = 16;
constexpr std::size_t kMaxNameBytes = 4096;

std::optional<std::uint64_t> bytes_per_element(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 15> kSizes{{{"BOOL", 1},
                                                                                      {"U8", 1},
                                                                                      {"I8", 1},
                                                                                      {"F8_E4M3", 1},
                                                                                      {"F8_E5M2", 1},
                                                                                      {"I16", 2},
                                                                                      {"U16", 2},
                                                                                      {"F16", 2},
                                                                                      {"BF16", 2},
                                                                                      {"I32", 4},
                                                                                      {"U32", 4},
                                                                                      {"F32", 4},
                                                                                      {"I64", 8},
                                                                                      {"U64", 8},
                                                                                      {"F64", 8}}};
  const auto found =
      std::find_if(kSizes.begin(), kSizes.end(), [&](const auto& e) { return e.first == dtype; });
  return found == kSizes.end() ? std::nullopt : std::optional(found->second);
}

// Reads the header as events, so that depth, duplicates and types are refused where they appear and nothing
// but the entries is ever built. Depth 1: names; depth 2: a tensor's keys, or metadata; depth 3: shape or
// data_offsets.
class HeaderReader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Error error;
  std::vector<SafetensorsEntry> entries;

  bool null() { return refuse("null"); }
  bool boolean(bool) { return refuse("a boolean"); }
  bool number_integer(number_integer_t) { return refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) { return refuse("a fraction"); }
  bool binary(binary_t&) { return refuse("binary data"); }

  bool number_unsigned(number_unsigned_t v) {
    if (!in_array_) return refuse("a number");
    if (key_ == "shape") {
      if (entries.back().shape.size() == kMaxDimensions) return stop("has more than 16 dimensions");
      if (v > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
        return stop("has a dimension beyond 2^63");
      entries.back().shape.push_back(static_cast<std::int64_t>(v));
      return true;
    }
    if (offsets_ == 2) return stop("has more than two data_offsets");
    (offsets_++ == 0 ? entries.back().begin : entries.back().end) = v;
    return true;
  }

  bool string(string_t& v) {
    if (depth_ == 2 && metadata_) return true;
    if (depth_ != 2 || key_ != "dtype" || in_array_) return refuse("a string");
    entries.back().dtype = v;
    return true;
  }

  bool start_object(std::size_t) {
    if (++depth_ > 2) return refuse("an object");
    if (depth_ < 2 || metadata_) return true;
    seen_ = 0;
    offsets_ = 0;
    return true;
  }

  bool end_object() {
    if (depth_-- == 2 && !std::exchange(metadata_, false) && seen_ != 7)
      return stop("lacks one of dtype, shape, data_offsets");
    return true;
  }

  bool start_array(std::size_t) {
    if (depth_ != 2 || metadata_ || in_array_ || (key_ != "shape" && key_ != "data_offsets"))
      return refuse("an array");
    in_array_ = true;
    return true;
  }

  bool end_array() {
    in_array_ = false;
    return key_ != "data_offsets" || offsets_ == 2 || stop("has fewer than two data_offsets");
  }

  bool key(string_t& v) {
    if (depth_ == 1) return name(v);
    if (metadata_) return true;
    const unsigned bit = v == "dtype" ? 1 : v == "shape" ? 2 : v == "data_offsets" ? 4 : 0;
    if (bit == 0) return stop("has a key other than dtype, shape and data_offsets");
    if (seen_ & bit) return stop("has the key '" + v + "' twice", ErrorKind::kConflict);
    seen_ |= bit;
    key_ = v;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    error = {fmt::format("the header is not valid JSON at byte {}.", position), ErrorKind::kInvalidValue};
    return false;
  }

 private:
  bool name(const string_t& v) {
    key_.clear();
    if (v.size() > kMaxNameBytes) return stop("is followed by a name longer than 4096 bytes");
    if (!names_.insert(v).second) {
      error = {"the name '" + v + "' appears twice.", ErrorKind::kConflict, v};
      return false;
    }
    metadata_ = v == "__metadata__";
    if (!metadata_) {
      entries.emplace_back();
      entries.back().name = v;
    }
    return true;
  }

  bool refuse(const char* what) {
    if (depth_ == 1 && key_.empty() && !entries.empty())
      return stop(fmt::format("is {}, not an object", what).c_str());
    return stop(fmt::format("holds {} where the format has none", what).c_str());
  }

  bool stop(const std::string& why, ErrorKind kind = ErrorKind::kInvalidValue) {
    const std::string tensor = entries.empty() ? "" : entries.back().name;
    error = {(entries.empty() ? "the header " : "tensor '" + tensor + "' ") + why + ".", kind, tensor};
    return false;
  }

  int depth_ = 0;
  bool metadata_ = false, in_array_ = false;
  unsigned seen_ = 0;
  int offsets_ = 0;
  std::string key_;
  std::unordered_set<std::string> names_;
};

// dtype x shape must be what the offsets span.
Expected<void> check_extent(const SafetensorsEntry& e) {
  const auto width = bytes_per_element(e.dtype);
  if (!width)
    return fail(ErrorKind::kUnsupported, e.name, "tensor '{}' has the unknown dtype '{}'.", e.name, e.dtype);
  if (e.end < e.begin)
    return fail(ErrorKind::kInvalidValue, e.name, "tensor '{}' ends before it begins.", e.name);
  std::uint64_t bytes = *width;
  for (const std::int64_t d : e.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(d), &bytes)) {
      return fail(ErrorKind::kInvalidValue, e.name, "the shape of tensor '{}' overflows 64 bits.", e.name);
    }
  }
  if (bytes != e.end - e.begin) {
    return fail(ErrorKind::kInvalidValue, e.name,
                "tensor '{}' needs {} bytes for its shape and dtype, but its data_offsets span {}.", e.name,
                bytes, e.end - e.begin);
  }
  return {};
}

}  // namespace

Expected<std::uint64_t> safetensors_data_offset(std::string_view first_bytes, std::uint64_t file_size) {
  if (first_bytes.size() < 8 || file_size < 8)
    return fail(ErrorKind::kInvalidValue, "",
                "the file is shorter than the 8 bytes of a safetensors length.");
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(first_bytes[static_cast<std::size_t>(i)]);
  if (length > kMaxSafetensorsHeader) {
    return fail(ErrorKind::kInvalidValue, "", "the header claims {} bytes; more than {} is refused.", length,
                kMaxSafetensorsHeader);
  }
  if (length > file_size - 8)
    return fail(ErrorKind::kInvalidValue, "", "the header claims {} bytes, the file has {}.", length,
                file_size);
  return 8 + length;
}

Expected<SafetensorsHeader> parse_safetensors_header(std::string_view bytes, std::uint64_t file_size) {
  SWEEP_GET(const auto data, safetensors_data_offset(bytes, file_size));
  if (bytes.size() < data)
    return fail(ErrorKind::kInvalidValue, "", "the header has {} bytes, {} are there.", data, bytes.size());
  const std::string_view text = bytes.substr(8, data - 8);
  if (text.empty() || text.front() != '{')
    return fail(ErrorKind::kInvalidValue, "", "the header does not begin with '{'.");
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader))
    return tl::unexpected(std::move(reader.error));

  SafetensorsHeader header{std::move(reader.entries)};
  for (const SafetensorsEntry& e : header.tensors) {
    SWEEP_TRY(check_extent(e));
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t place = 0;
  for (SafetensorsEntry& e : header.tensors) {
    if (e.begin != place) {
      return fail(ErrorKind::kInvalidValue, e.name, "tensor '{}' begins at byte {} of the data, {} {}.",
                  e.name, e.begin,
                  e.begin < place ? "inside the one before, which ends at" : "leaving a hole after", place);
    }
    place = e.end;
    if (place > file_size - data) {
      return fail(ErrorKind::kInvalidValue, e.name, "tensor '{}' ends at byte {} of the data, which has {}.",
                  e.name, place, file_size - data);
    }
    e.begin += data;
    e.end += data;
  }
  if (place != file_size - data) {
    return fail(ErrorKind::kInvalidValue, "", "{} bytes after the last tensor belong to none.",
                file_size - data - place);
  }
  return header;
}

}  // namespace sweep::shape
