#include "schema/frame.h"

#include <fmt/format.h>

#include "base/fail.h"
#include "schema/codec.h"

namespace sweep {
namespace {

constexpr std::size_t kLengths = 8;

void put_length(std::string& out, std::size_t length) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(length >> shift & 0xff);
}

std::size_t length_at(std::string_view bytes) {
  std::size_t length = 0;
  for (const char byte : bytes.substr(0, 4)) length = length << 8 | static_cast<unsigned char>(byte);
  return length;
}

}  // namespace

std::string encode(const Frame& frame) {
  const std::string text = dump(frame.head);
  std::string out;
  out.reserve(kLengths + text.size() + frame.blob.size());
  put_length(out, text.size());
  put_length(out, frame.blob.size());
  return out.append(text).append(frame.blob);
}

std::string text_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

i64 integer_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<i64>() : 0;
}

double number_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

bool flag_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

Expected<std::optional<Frame>> FrameReader::next() {
  const std::string_view left = std::string_view(buffer_).substr(used_);
  if (left.size() < kLengths) return std::nullopt;
  const std::size_t text = length_at(left), blob = length_at(left.substr(4));
  if (text > max_bytes_ || blob > max_bytes_ - text)
    return fail("a frame of {} bytes where {} are allowed", text + blob, max_bytes_);
  if (left.size() < kLengths + text + blob) return std::nullopt;
  auto head = parse_json(left.substr(kLengths, text), max_bytes_);
  if (!head) return fail("a frame that is no JSON: " + head.error().message);
  if (!head->is_object()) return fail("a frame that is no JSON object");
  Frame frame{std::move(*head), std::string(left.substr(kLengths + text, blob))};
  used_ += kLengths + text + blob;
  if (used_ == buffer_.size() || used_ > (1u << 20)) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  return std::optional<Frame>(std::move(frame));
}

}  // namespace sweep
