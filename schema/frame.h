// Frame: one message of a stream between two processes (agents, a rank and its agent, a bridge): a JSON
// object and, where bytes travel that are no text, a blob. It owns the layout and refuses what is larger than
// the reader allows before a byte of it is kept.
//
//   4 bytes  length of the JSON text, big-endian
//   4 bytes  length of the blob, big-endian
//   the JSON text, the blob
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep {

struct Frame {
  nlohmann::json head;
  std::string blob;
};

inline constexpr std::size_t kLongestFrame = 80u << 20;  // above the longest line of a mailbox

std::string encode(const Frame&);

// Members of a message from another process. Absent, or of another type: empty, 0, false.
std::string text_of(const nlohmann::json& object, const char* name);
i64 integer_of(const nlohmann::json& object, const char* name);
double number_of(const nlohmann::json& object, const char* name);
bool flag_of(const nlohmann::json& object, const char* name);

class FrameReader {
 public:
  explicit FrameReader(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame; none: more bytes are needed; an error: the stream cannot be read any further.
  Expected<std::optional<Frame>> next();
  void allow(std::size_t max_bytes) { max_bytes_ = max_bytes; }

 private:
  std::size_t max_bytes_;
  std::string buffer_;
  std::size_t used_ = 0;
};

}  // namespace sweep
