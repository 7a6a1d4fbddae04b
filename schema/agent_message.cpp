#include "schema/agent_message.h"

#include <fmt/format.h>

#include <optional>

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

// --- bodies

json body_of(const NodePart& part) {
  return {{"attempt", to_json(part.attempt)},
          {"first_rank", part.first_rank},
          {"ranks", part.ranks},
          {"slots", part.slots},
          {"beside", part.beside}};
}
json body_of(const EndPart& m) {
  return {{"attempt", m.attempt}, {"cause", to_string(m.cause)}, {"at_once", m.at_once}};
}
json body_of(const PeerEnded& m) {
  return {{"attempt", m.attempt}, {"cause", to_string(m.cause)}};
}
json body_of(const AllStarted& m) {
  return {{"attempt", m.attempt}};
}
json body_of(const PartStarted& m) {
  return {{"attempt", m.attempt}, {"pids", m.pids}, {"unix_ns", m.unix_ns}};
}
json body_of(const PartTrouble& m) {
  return {{"attempt", m.attempt}, {"cause", to_string(m.cause)}};
}
json body_of(const RankRecord& m) {
  return to_json(m);
}
json body_of(const RankExit& m) {
  return to_json(m);
}
json body_of(const AttemptEnd& m) {
  return to_json(m);
}
json body_of(const StoreMessage& m) {
  return {{"attempt", m.attempt}, {"client", m.client}, {"message", m.frame.head}};
}
json body_of(const Leave& m) {
  return {{"reason", m.reason}};
}

// --- reading: members that a message cannot do without. The first that is missing is kept as the error.

class Body {
 public:
  explicit Body(const json& object) : object_(object) {}

  i64 integer(const char* name) {
    const auto found = object_.find(name);
    if (found != object_.end() && found->is_number_integer()) return found->get<i64>();
    return missing(name, "an integer"), 0;
  }
  std::vector<i64> integers(const char* name) {
    std::vector<i64> out;
    const auto found = object_.find(name);
    if (found == object_.end() || !found->is_array()) return missing(name, "a list of integers"), out;
    for (const json& each : *found) {
      if (!each.is_number_integer()) return missing(name, "a list of integers"), out;
      out.push_back(each.get<i64>());
    }
    return out;
  }
  bool flag(const char* name) {
    const auto found = object_.find(name);
    if (found != object_.end() && found->is_boolean()) return found->get<bool>();
    return missing(name, "true or false"), false;
  }
  EndCause cause() {
    const auto out = end_cause_from(text_of(object_, "cause"));
    if (!out) missing("cause", "a cause of an end");
    return out.value_or(EndCause::kRankFailed);
  }
  const json& object(const char* name) {
    static const json kEmpty = json::object();
    const auto found = object_.find(name);
    if (found != object_.end() && found->is_object()) return *found;
    return missing(name, "an object"), kEmpty;
  }
  void refuse(std::string why) {
    if (!error_) error_ = std::move(why);
  }
  const std::optional<std::string>& error() const { return error_; }
  const json& all() const { return object_; }

 private:
  void missing(const char* name, const char* what) { refuse(fmt::format("{} must be {}", name, what)); }

  const json& object_;
  std::optional<std::string> error_;
};

template <class Record>
Record read_record(Body& body) {
  auto out = from_json<Record>(body.all());
  if (!out) body.refuse(out.error().message);
  return out ? std::move(*out) : Record{};
}

void read(Body& body, const Frame&, NodePart& out) {
  auto attempt = from_json<Attempt>(body.object("attempt"));
  if (!attempt) return body.refuse(attempt.error().message);
  out.attempt = std::move(*attempt);
  out.first_rank = body.integer("first_rank");
  out.ranks = body.integer("ranks");
  out.slots = body.integers("slots");
  out.beside = body.flag("beside");
  if (body.error()) return;
  const i64 world = out.attempt.processes();
  if (world < 1 || world > kMaxRanks || out.ranks < 1 || out.first_rank < 0 || out.ranks > world ||
      out.first_rank > world - out.ranks)
    return body.refuse("the ranks of the part are not among the attempt's");
  out.whole = out.ranks == world;
  for (const i64 slot : out.slots)
    if (slot < 0 || slot >= kMaxRanks) return body.refuse("there is no such slot");
  if (static_cast<i64>(out.slots.size()) != out.ranks) body.refuse("a part needs a slot for each rank");
}
void read(Body& body, const Frame&, EndPart& out) {
  out = {body.integer("attempt"), body.cause(), body.flag("at_once")};
}
void read(Body& body, const Frame&, PeerEnded& out) {
  out = {body.integer("attempt"), body.cause()};
}
void read(Body& body, const Frame&, AllStarted& out) {
  out = {body.integer("attempt")};
}
void read(Body& body, const Frame&, PartStarted& out) {
  out = {body.integer("attempt"), body.integers("pids"), body.integer("unix_ns")};
}
void read(Body& body, const Frame&, PartTrouble& out) {
  out = {body.integer("attempt"), body.cause()};
}
void read(Body& body, const Frame&, RankRecord& out) {
  out = read_record<RankRecord>(body);
}
void read(Body& body, const Frame&, RankExit& out) {
  out = read_record<RankExit>(body);
}
void read(Body& body, const Frame&, AttemptEnd& out) {
  out = read_record<AttemptEnd>(body);
}
void read(Body& body, const Frame& frame, StoreMessage& out) {
  out.attempt = body.integer("attempt");
  out.client = body.integer("client");
  if (out.client < 0) return body.refuse("client must be 0 or more");
  out.frame = {body.object("message"), frame.blob};
}
void read(Body& body, const Frame&, Leave& out) {
  out.reason = text_of(body.all(), "reason");
}

using Refused = tl::unexpected<MessageRefusal>;

template <class Message>
tl::expected<AgentMessage, MessageRefusal> read_message(const Frame& frame, const json& object) {
  Body body(object);
  Message out;
  read(body, frame, out);
  if (body.error())
    return Refused({MessageRefusal::Kind::kMalformed, fmt::format("{}: {}", kKind<Message>, *body.error())});
  return AgentMessage(std::move(out));
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
