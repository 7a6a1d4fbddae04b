// Any bytes as a stream of frames between two agents: what is a message is written again and read again, and
// stays the same.
#include <string>

#include "schema/agent_message.h"

namespace {

void digest(const sweep::Frame& frame) {
  using namespace sweep;
  const auto message = message_from(frame);
  if (!message) return;
  const Frame once = to_frame(*message);
  const auto again = message_from(once);
  if (!again || again->index() != message->index()) __builtin_trap();
  if (attempt_of(*again) != attempt_of(*message)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  sweep::FrameReader reader(sweep::kLongestFrame);
  reader.feed(bytes);
  for (auto frame = reader.next(); frame && *frame; frame = reader.next()) digest(**frame);
  const auto text = nlohmann::json::parse(bytes, nullptr, false);
  if (!text.is_discarded()) digest({text, "blob"});
  return 0;
}
