// Messages between agents: every one comes back as it was, and what cannot be read is refused with the kind
// of fault.
#include "schema/agent_message.h"

#include <gtest/gtest.h>

#include "schema/codec.h"

namespace sweep {
namespace {

using nlohmann::json;
using Kind = MessageRefusal::Kind;

NodePart part() {
  NodePart out;
  out.attempt.id = 7;
  out.attempt.trial.dp = 4;
  out.attempt.trial.nodes = 2;
  out.first_rank = 2, out.ranks = 2, out.whole = false, out.slots = {0, 3}, out.beside = true;
  return out;
}

std::vector<AgentMessage> one_of_each() {
  RankRecord record;
  record.attempt = 7, record.rank = 3, record.message = "out of memory";
  RankExit exit;
  exit.attempt = 7, exit.rank = 3, exit.signal = 9;
  AttemptEnd end;
  end.attempt = 7, end.cause = EndCause::kHang, end.clean = false;
  return {part(),
          EndPart{7, EndCause::kCancelled, true},
          PeerEnded{7, EndCause::kHang},
          AllStarted{7},
          AttemptStarted{7, {11, 12}, 5},
          PartTrouble{7, EndCause::kRankFailed},
          record,
          exit,
          end,
          StoreMessage{{7, 2}, {{{"get", "key"}}, std::string("\0\xff", 2)}},
          Leave{"finished"}};
}

Kind refusal_of(const json& head) {
  const auto read = message_from({head, ""});
  EXPECT_FALSE(read) << head;
  return read ? Kind{} : read.error().kind;
}

TEST(AgentMessage, EveryOneComesBackAsItWas) {
  const auto messages = one_of_each();
  ASSERT_EQ(messages.size(), std::variant_size_v<AgentMessage>);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].index(), i) << "one of each, in order";
    const Frame sent = to_frame(messages[i]);
    const auto read = message_from(sent);
    ASSERT_TRUE(read) << kind_of(messages[i]) << ": " << read.error().text;
    EXPECT_EQ(read->index(), i);
    EXPECT_EQ(to_frame(*read).head, sent.head);
    EXPECT_EQ(to_frame(*read).blob, sent.blob);
    EXPECT_EQ(attempt_of(*read), std::holds_alternative<Leave>(*read) ? 0 : 7);
  }
}

TEST(AgentMessage, WhatLacksAMemberIsMalformed) {
  for (const AgentMessage& message : one_of_each()) {
    if (std::holds_alternative<Leave>(message) || std::holds_alternative<RankRecord>(message) ||
        std::holds_alternative<RankExit>(message) || std::holds_alternative<AttemptEnd>(message))
      continue;  // their members have defaults
    const Frame whole = to_frame(message);
    for (const auto& [name, value] : whole.head["body"].items()) {
      Frame less = whole, other = whole;
      less.head["body"].erase(name);
      other.head["body"][name] = "x";
      EXPECT_EQ(refusal_of(less.head), Kind::kMalformed) << kind_of(message) << " without " << name;
      EXPECT_EQ(refusal_of(other.head), Kind::kMalformed) << kind_of(message) << " with another " << name;
    }
  }
}

TEST(AgentMessage, WhatIsNoMessageIsRefused) {
  for (const json& head :
       {json(1), json::array(), json::object(), json{{"kind", 5}, {"body", json::object()}},
        json{{"kind", "leave"}}, json{{"kind", "leave"}, {"body", 1}}})
    EXPECT_EQ(refusal_of(head), Kind::kNoMessage) << head;
  EXPECT_EQ(refusal_of({{"kind", "start"}, {"body", json::object()}}), Kind::kUnknownKind);
}

TEST(AgentMessage, APartNeedsRanksOfTheAttemptAndASlotForEach) {
  const auto with = [](auto&& change) {
    NodePart out = part();
    change(out);
    return refusal_of(to_frame(out).head);
  };
  EXPECT_EQ(with([](NodePart& p) { p.first_rank = 3; }), Kind::kMalformed);
  EXPECT_EQ(with([](NodePart& p) { p.first_rank = -1; }), Kind::kMalformed);
  EXPECT_EQ(with([](NodePart& p) { p.ranks = 0; }), Kind::kMalformed);
  EXPECT_EQ(with([](NodePart& p) { p.slots = {0}; }), Kind::kMalformed);
  EXPECT_EQ(with([](NodePart& p) { p.slots = {0, -1}; }), Kind::kMalformed);
  EXPECT_EQ(with([](NodePart& p) { p.attempt.trial.dp = i64{1} << 40; }), Kind::kMalformed);
}

TEST(AgentMessage, AClientOfTheStoreIsNotNegative) {
  EXPECT_EQ(refusal_of(to_frame(StoreMessage{{7, -1}, {json::object(), ""}}).head), Kind::kMalformed);
}

}  // namespace
}  // namespace sweep
