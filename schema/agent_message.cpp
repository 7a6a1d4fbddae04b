#include "schema/agent_message.h"

#include <fmt/format.h>

#include <iterator>

#include "schema/codec.h"

namespace sweep {
namespace {

using nlohmann::json;

template <class T>
constexpr std::string_view kKind = "";
#define AGENT_MESSAGE(type, kind) \
  template <>                     \
  constexpr std::string_view kKind<type> = kind;
#include "schema/agent_message.def"
#undef AGENT_MESSAGE

template <Recorded Message>
json body_of(const Message& m) {
  return to_json(m);
}
json body_of(const NodePart& m) {
  return to_json<PartOfAttempt>(m);
}
json body_of(const StoreMessage& m) {
  json out = to_json<StoreCaller>(m);
  out["message"] = m.frame.head;
  return out;
}

template <Recorded Message>
Expected<Message> read(Of<Message>, const json& body, const Frame&) {
  return from_json<Message>(body);
}

Expected<NodePart> read(Of<NodePart>, const json& body, const Frame&) {
  SWEEP_GET(auto part, from_json<PartOfAttempt>(body));
  const i64 world = part.attempt.processes();
  if (world < 1 || world > kMaxRanks || part.ranks < 1 || part.first_rank < 0 || part.ranks > world ||
      part.first_rank > world - part.ranks)
    return fail("the ranks of the part are not among the attempt's");
  for (const i64 slot : part.slots)
    if (slot < 0 || slot >= kMaxRanks) return fail("there is no such slot");
  if (std::ssize(part.slots) != part.ranks) return fail("a part needs a slot for each rank");
  const bool whole = part.ranks == world;
  return NodePart{std::move(part), whole};
}

Expected<StoreMessage> read(Of<StoreMessage>, const json& body, const Frame& frame) {
  SWEEP_GET(auto client, from_json<StoreCaller>(body));
  if (client.client < 0) return fail("client must be 0 or more");
  const auto message = body.find("message");
  if (message == body.end() || !message->is_object()) return fail("message must be an object");
  return StoreMessage{client, {*message, frame.blob}};
}

using Refused = tl::unexpected<MessageRefusal>;

template <class Message>
tl::expected<AgentMessage, MessageRefusal> read_message(const Frame& frame, const json& body) {
  auto out = read(Of<Message>(), body, frame);
  if (out) return AgentMessage(std::move(*out));
  return Refused(
      {MessageRefusal::Kind::kMalformed, fmt::format("{}: {}", kKind<Message>, out.error().message)});
}

}  // namespace

std::string_view kind_of(const AgentMessage& message) {
  return std::visit([]<class Message>(const Message&) { return kKind<Message>; }, message);
}

i64 attempt_of(const AgentMessage& message) {
  return std::visit(
      []<class Message>(const Message& m) {
        if constexpr (std::is_same_v<Message, NodePart>)
          return m.attempt.id;
        else if constexpr (std::is_same_v<Message, Leave>)
          return i64{0};
        else
          return m.attempt;
      },
      message);
}

Frame to_frame(const AgentMessage& message) {
  Frame out{
      {{"kind", kind_of(message)}, {"body", std::visit([](const auto& m) { return body_of(m); }, message)}},
      {}};
  if (const auto* store = std::get_if<StoreMessage>(&message)) out.blob = store->frame.blob;
  return out;
}

tl::expected<AgentMessage, MessageRefusal> message_from(const Frame& frame) {
  using Kind = MessageRefusal::Kind;
  if (!frame.head.is_object()) return Refused({Kind::kNoMessage, "a message must be an object"});
  const auto kind = text_of(frame.head, "kind");
  const auto body = frame.head.find("body");
  if (kind.empty() || body == frame.head.end() || !body->is_object())
    return Refused({Kind::kNoMessage, "a message needs a kind and a body"});
#define AGENT_MESSAGE(type, word) \
  if (kind == (word)) return read_message<type>(frame, *body);
#include "schema/agent_message.def"
#undef AGENT_MESSAGE
  return Refused({Kind::kUnknownKind, fmt::format("there is no message '{}'", kind.substr(0, 40))});
}

}  // namespace sweep
