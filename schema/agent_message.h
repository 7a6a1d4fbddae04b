// AgentMessage: what the head agent of an allocation and the agents of its other nodes say to each other, as
// records (messages.def). A message is a frame {"kind", "body"}; agent_message.def lists the kinds. Agents of
// one allocation have the same version, so what cannot be read is damage: it is refused with the reason, and
// nothing is guessed.
#pragma once
#include <string>
#include <string_view>
#include <variant>

#include "schema/frame.h"
#include "schema/node_part.h"
#include "schema/records.h"

namespace sweep {

// Between a rank and the rendezvous store: its request, or the answer.
struct StoreMessage : StoreCaller {
  Frame frame;
};

using AgentMessage = std::variant<NodePart, EndPart, PeerEnded, AllStarted, AttemptStarted, PartTrouble,
                                  RankRecord, RankExit, AttemptEnd, StoreMessage, Leave>;

// Why a frame is no message.
struct MessageRefusal {
  enum class Kind {
    kNoMessage,    // it has no kind, or its body is no object
    kUnknownKind,  // agent_message.def does not list it
    kMalformed,    // its body is not what its kind needs
  };
  Kind kind = Kind::kNoMessage;
  std::string text;  // text for logs
};

std::string_view kind_of(const AgentMessage&);
// The attempt that the message is about; 0: none.
i64 attempt_of(const AgentMessage&);

Frame to_frame(const AgentMessage&);
tl::expected<AgentMessage, MessageRefusal> message_from(const Frame&);

}  // namespace sweep
