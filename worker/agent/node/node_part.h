// NodePart: what one node runs of an attempt: consecutive ranks, the whole attempt where it has one node. It travels
// from the head agent to a node agent.
#pragma once
#include <nlohmann/json.hpp>

#include "schema/attempt.h"
#include "schema/codec.h"

namespace sweep::agent {

struct NodePart {
  Attempt attempt;
  i64 first_rank = 0;
  i64 ranks = 1;
  // No other node takes part.
  bool whole = true;
  // Of the node, one for each rank.
  std::vector<i64> slots;
  // Other attempts may run on the node meanwhile.
  bool beside = false;

  // The attempt's rank that the index-th process of this node is.
  i64 rank(i64 index) const { return attempt.rank_of(first_rank + index); }
};

inline nlohmann::json to_json(const NodePart& part) {
  return {{"attempt", sweep::to_json(part.attempt)},
          {"first_rank", part.first_rank},
          {"ranks", part.ranks},
          {"slots", part.slots},
          {"beside", part.beside}};
}

// Of one attempt: anything above is damage.
inline constexpr i64 kMaxRanks = 1 << 16;

inline Expected<NodePart> part_from(const nlohmann::json& body) {
  NodePart out;
  if (!body.is_object() || !body.contains("attempt")) return fail("a part needs an attempt");
  auto attempt = from_json<Attempt>(body["attempt"]);
  if (!attempt) return tl::unexpected(attempt.error());
  out.attempt = std::move(*attempt);
  const auto first = body.find("first_rank"), ranks = body.find("ranks");
  if (first == body.end() || ranks == body.end() || !first->is_number_integer() ||
      !ranks->is_number_integer())
    return fail("a part needs first_rank and ranks");
  out.first_rank = first->get<i64>();
  out.ranks = ranks->get<i64>();
  const i64 world = out.attempt.processes();
  if (world < 1 || world > kMaxRanks || out.ranks < 1 || out.first_rank < 0 ||
      out.ranks > world - out.first_rank)
    return fail("the ranks of the part are not among the attempt's");
  out.whole = out.ranks == world;
  out.beside = body.value("beside", nlohmann::json()) == true;
  for (const auto& slot : body.value("slots", nlohmann::json::array()))
    if (slot.is_number_integer() && slot >= 0 && slot < kMaxRanks) out.slots.push_back(slot.get<i64>());
  if (static_cast<i64>(out.slots.size()) != out.ranks) return fail("a part needs a slot for each rank");
  return out;
}

// Of a message that names one. Agents of one allocation have the same version, so an unknown word is damage.
inline EndCause cause_in(const nlohmann::json& body) {
  return end_cause_from(text_of(body, "cause")).value_or(EndCause::kRankFailed);
}

// Messages between agents, beside the kinds of the outbox (schema/spool.h).
// Head to node. Body: NodePart.
inline constexpr std::string_view kStartPart = "start_part";
// Head to node: {"attempt", "cause", "at_once"}.
inline constexpr std::string_view kEndPart = "end_part";
// Head to node: {"attempt", "cause"}.
inline constexpr std::string_view kPeerEnded = "peer_ended";
// Head to node: {"attempt"}.
inline constexpr std::string_view kAllStarted = "all_started";
// Node to head: {"attempt", "cause"}.
inline constexpr std::string_view kTrouble = "trouble";
// Both ways: {"attempt", "client", "message"}, with a blob.
inline constexpr std::string_view kStore = "store";
// Both ways: no more work.
inline constexpr std::string_view kLeave = "leave";

}  // namespace sweep::agent
