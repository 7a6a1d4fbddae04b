// AgentMessage: what the head agent of an allocation and the agents of its other nodes say to each other, as
// structs with one codec. A message is a frame {"kind", "body"}; agent_message.def lists the kinds. Agents of
// one allocation have the same version, so what cannot be read is damage: it is refused with the reason, and
// nothing is guessed.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schema/frame.h"
#include "schema/node_part.h"
#include "schema/records.h"

namespace sweep {

// The ranks of a part are to be ended.
struct EndPart {
  i64 attempt = 0;
  EndCause cause = EndCause::kCancelled;
  // The ranks get no time to end by themselves.
  bool at_once = false;
};
// Another part of the attempt is in trouble.
struct PeerEnded {
  i64 attempt = 0;
  EndCause cause = EndCause::kRankFailed;
};
// Every part of the attempt runs.
struct AllStarted {
  i64 attempt = 0;
};
// The ranks of a part run.
struct PartStarted {
  i64 attempt = 0;
  std::vector<i64> pids;
  i64 unix_ns = 0;
};
// A part is in trouble; its AttemptEnd follows later.
struct PartTrouble {
  i64 attempt = 0;
  EndCause cause = EndCause::kRankFailed;
};
// Between a rank and the rendezvous store: its request, or the answer.
struct StoreMessage {
  i64 attempt = 0;
  // The rank's connection on its node.
  i64 client = 0;
  Frame frame;
};
// No more work.
struct Leave {
  std::string reason;
};

using AgentMessage = std::variant<NodePart, EndPart, PeerEnded, AllStarted, PartStarted, PartTrouble,
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
