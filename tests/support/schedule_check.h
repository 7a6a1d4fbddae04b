// Runs a pipeline schedule as NCCL would: whether anything waits for ever, how many micro-batches are in
// flight, and how much of the time is bubble.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/expected.h"
#include "bench_kernels/shape/schedule_times.h"

namespace sweep::shape {

struct ScheduleReport {
  double makespan = 0;
  std::vector<double> idle;  // for each rank, the makespan less its own computations
  // For each rank, the most micro-batches (of a chunk, each) between the start of their forward and the end
  // of their (weight) backward.
  std::vector<i64> in_flight;
  // Waiting over all ranks' time: (p - 1) / (m v + p - 1) for 1f1b, and interleaved with forward : backward 1
  // : 2.
  double bubble = 0;
};

inline const char* name_of(Act act) {
  constexpr const char* kNames[] = {"forward",      "backward",      "backward_weight", "send_forward",
                                    "recv_forward", "send_backward", "recv_backward"};
  return kNames[static_cast<std::size_t>(act)];
}

inline std::string described_action(i64 rank, const Action& a) {
  return fmt::format("rank {}: {} of chunk {}, micro-batch {}", rank, name_of(a.act), a.chunk, a.micro);
}

// A message as one of its ends has posted it.
struct Post {
  i64 peer = 0, number = 0;
  double time = 0;
};

// All ranks at once, each at its place in its list.
class Machine {
 public:
  Machine(const Pipeline& p, const std::vector<ActionList>& lists, const Costs& costs)
      : p_(p),
        lists_(lists),
        costs_(costs),
        ranks_(lists.size()),
        passed_(static_cast<std::size_t>(2 * p.stages() * p.micros)) {
    for (Rank& r : ranks_) r.done.resize(static_cast<std::size_t>(kActs * p.chunks * p.micros));
  }

  Expected<ScheduleReport> run();

 private:
  struct Rank {
    std::size_t next = 0;
    double clock = 0, busy = 0;
    i64 held = 0, peak = 0;
    std::vector<char> done;     // by place_of
    std::map<i64, i64> unsent;  // peer -> number of the last send posted to it
    std::deque<Post> posts;     // posts that have not passed, in the order of posting
    double last_pass = 0;
  };
  static constexpr i64 kActs = 7;
  // Actions of one kind lie together.
  std::size_t place_of(const Action& a) const {
    return static_cast<std::size_t>((static_cast<i64>(a.act) * p_.chunks + a.chunk) * p_.micros + a.micro);
  }
  const std::optional<double>& passed(i64 number) const { return passed_[static_cast<std::size_t>(number)]; }
  bool advance(i64 rank);
  bool post(i64 rank, const Action&);
  bool compute(i64 rank, const Action&);
  bool pass_front(i64 rank);
  std::optional<double> input_of(i64 rank, const Action&) const;
  std::optional<Error> order_fault(i64 rank, const Action&) const;
  Expected<ScheduleReport> report() const;

  const Pipeline& p_;
  const std::vector<ActionList>& lists_;
  const Costs& costs_;
  std::vector<Rank> ranks_;
  std::vector<std::optional<double>> passed_;  // for each message, when both ends had posted it
  std::optional<Error> fault_;
};

inline std::optional<Error> Machine::order_fault(i64 rank, const Action& a) const {
  const Rank& r = ranks_[static_cast<std::size_t>(rank)];
  if (a.chunk < 0 || a.chunk >= p_.chunks || a.micro < 0 || a.micro >= p_.micros)
    return Error{"does not exist", ErrorKind::kInvalidValue, "unknown_action"};
  if (r.done[place_of(a)]) return Error{"comes twice", ErrorKind::kConflict, "action_twice"};
  const auto needs = [&](Act act) { return !r.done[place_of({act, a.chunk, a.micro})]; };
  if (a.act == Act::kBackward && needs(Act::kForward))
    return Error{"comes before its forward", ErrorKind::kMissing, "action_missing"};
  if (a.act == Act::kBackwardWeight && needs(Act::kBackward))
    return Error{"comes before its backward", ErrorKind::kMissing, "action_missing"};
  if (a.act == Act::kSendForward && needs(Act::kForward))
    return Error{"comes before its forward", ErrorKind::kMissing, "action_missing"};
  if (a.act == Act::kSendBackward && needs(Act::kBackward))
    return Error{"comes before its backward", ErrorKind::kMissing, "action_missing"};
  const i64 stage = p_.stage(rank, a.chunk);
  if (a.act == Act::kForward && stage > 0 && needs(Act::kRecvForward))
    return Error{"has no receive", ErrorKind::kMissing, "no_receive"};
  if (a.act == Act::kBackward && stage + 1 < p_.stages() && needs(Act::kRecvBackward))
    return Error{"has no receive", ErrorKind::kMissing, "no_receive"};
  const bool inward = a.act == Act::kRecvForward || a.act == Act::kSendBackward;
  const bool outward = a.act == Act::kSendForward || a.act == Act::kRecvBackward;
  if ((inward && stage == 0) || (outward && stage + 1 == p_.stages()))
    return Error{"has no peer", ErrorKind::kInvalidValue, "no_peer"};
  return std::nullopt;
}

inline bool Machine::post(i64 rank, const Action& a) {
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  const i64 peer = peer_of(p_, rank, a), number = message_number(p_, rank, a);
  if (sends(a.act)) {  // the buffer of the send before must be free
    const auto last = r.unsent.find(peer);
    if (last != r.unsent.end()) {
      if (!passed(last->second)) return false;
      r.clock = std::max(r.clock, *passed(last->second));
    }
    r.unsent[peer] = number;
  }
  r.posts.push_back({peer, number, r.clock});
  return true;
}

// When a computation's message is there; nothing: not yet.
inline std::optional<double> Machine::input_of(i64 rank, const Action& a) const {
  const i64 stage = p_.stage(rank, a.chunk);
  const bool first = a.act == Act::kForward && stage == 0;
  const bool last = a.act == Act::kBackward && stage + 1 == p_.stages();
  if (first || last || a.act == Act::kBackwardWeight) return 0.0;
  const Act receive = a.act == Act::kForward ? Act::kRecvForward : Act::kRecvBackward;
  return passed(message_number(p_, rank, {receive, a.chunk, a.micro}));
}

inline bool Machine::compute(i64 rank, const Action& a) {
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  const auto ready = input_of(rank, a);
  if (!ready) return false;
  const double cost = cost_of(p_, costs_, a.act);
  r.clock = std::max(r.clock, *ready) + cost;
  r.busy += cost;
  if (a.act == Act::kForward) r.peak = std::max(r.peak, ++r.held);
  const Act frees = splits_backward(p_.kind) ? Act::kBackwardWeight : Act::kBackward;
  if (a.act == frees) --r.held;
  return true;
}

inline bool Machine::advance(i64 rank) {
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  const ActionList& list = lists_[static_cast<std::size_t>(rank)];
  bool moved = false;
  while (r.next < list.size()) {
    const Action& a = list[r.next];
    if (const auto why = order_fault(rank, a)) {
      fault_ = retold(*why, described_action(rank, a) + " " + why->message);
      return false;
    }
    if (computes(a.act) ? !compute(rank, a) : !post(rank, a)) return moved;
    r.done[place_of(a)] = 1;
    ++r.next;
    moved = true;
  }
  return moved;
}

// The first message that the rank waits for, if it is also the first at its other end.
inline bool Machine::pass_front(i64 rank) {
  Rank& mine = ranks_[static_cast<std::size_t>(rank)];
  if (mine.posts.empty()) return false;
  const Post post = mine.posts.front();
  Rank& other = ranks_[static_cast<std::size_t>(post.peer)];
  const auto theirs = std::find_if(other.posts.begin(), other.posts.end(),
                                   [&](const Post& their) { return their.peer == rank; });
  if (theirs == other.posts.end()) return false;
  if (theirs->number != post.number) {
    fault_ = Error{fmt::format("ranks {} and {} post their messages in different orders", rank, post.peer),
                   ErrorKind::kConflict, "message_order"};
    return false;
  }
  if (theirs != other.posts.begin()) return false;
  const double time = std::max({post.time, theirs->time, mine.last_pass, other.last_pass});
  passed_[static_cast<std::size_t>(post.number)] = mine.last_pass = other.last_pass = time;
  mine.posts.pop_front();
  other.posts.pop_front();
  return true;
}

inline Expected<ScheduleReport> Machine::report() const {
  ScheduleReport out;
  double busy = 0;
  for (const Rank& r : ranks_) {
    const auto count = static_cast<std::size_t>(p_.chunks * p_.micros);
    for (const Act act : {Act::kForward, Act::kBackward, Act::kBackwardWeight}) {
      const auto first = r.done.begin() + static_cast<std::ptrdiff_t>(place_of({act, 0, 0}));
      const auto found =
          static_cast<std::size_t>(std::count(first, first + static_cast<std::ptrdiff_t>(count), 1));
      const bool wanted = act != Act::kBackwardWeight || splits_backward(p_.kind);
      if (found != (wanted ? count : 0))
        return fail(ErrorKind::kMissing, "action_missing",
                    fmt::format("rank {} has {} of {} {} computations", &r - ranks_.data(), found,
                                wanted ? count : 0, name_of(act)));
    }
    if (!r.posts.empty())
      return fail(ErrorKind::kConflict, "deadlock",
                  fmt::format("a message between ranks {} and {} never passes", &r - ranks_.data(),
                              r.posts.front().peer));
    out.makespan = std::max(out.makespan, r.clock);
    out.in_flight.push_back(r.peak);
    busy += r.busy;
  }
  for (const Rank& r : ranks_) out.idle.push_back(out.makespan - r.busy);
  out.bubble = 1 - busy / (out.makespan * static_cast<double>(ranks_.size()));
  return out;
}

inline Expected<ScheduleReport> Machine::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < ranks_.size() && !fault_; ++rank)
      moved = advance(static_cast<i64>(rank)) || moved;
    for (std::size_t rank = 0; rank < ranks_.size() && !fault_; ++rank)
      while (!fault_ && pass_front(static_cast<i64>(rank))) moved = true;
    if (fault_) return tl::unexpected(*fault_);
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].next < lists_[rank].size())
      return fail(
          ErrorKind::kConflict, "deadlock",
          described_action(static_cast<i64>(rank), lists_[rank][ranks_[rank].next]) + " waits for ever");
  return report();
}

// Runs all ranks' lists as they are, with the strictest transport: all posts of a rank, whichever their peer
// and direction, form one queue, and a message passes when it is at the front at both ends. That is what NCCL
// does with sends and receives of one communicator, which run one after another on its stream. A message
// itself takes no time. An error says what is wrong: a rank that waits for
// ever, ends of a queue that differ, a computation that is missing, twice or before what it needs.
inline Expected<ScheduleReport> check_schedule(const Pipeline& p, const std::vector<ActionList>& lists,
                                               const Costs& costs = {}) {
  if (static_cast<i64>(lists.size()) != p.ranks)
    return fail(ErrorKind::kConflict, "list_count",
                fmt::format("{} lists of actions for {} ranks", lists.size(), p.ranks));
  return Machine(p, lists, costs).run();
}

// (p - 1) / (m v + p - 1), the bubble's share of the pipeline's time (for zero_bubble its third).
inline double ideal_bubble(const Pipeline& p) {
  const double fill = static_cast<double>(p.ranks - 1), turns = static_cast<double>(p.micros * p.chunks);
  const double idle = p.kind == Schedule::kZeroBubble ? fill / 3 : fill;
  return idle / (turns + idle);
}

// The most micro-batches (in units of a rank's whole share of layers) that a rank has in flight.
inline double peak_in_flight(const Pipeline& p, i64 rank) {
  const i64 behind = p.ranks - 1 - rank;
  switch (p.kind) {
    case Schedule::kGpipe:
      return static_cast<double>(p.micros);
    case Schedule::k1f1b:
      return static_cast<double>(std::min(p.micros, behind + 1));
    case Schedule::kZeroBubble:
      return static_cast<double>(std::min(p.micros, p.ranks));
    case Schedule::kInterleaved: {
      const i64 warmup = p.chunks == 1 ? behind : 2 * behind + (p.chunks - 1) * p.ranks;
      return static_cast<double>(std::min(p.micros * p.chunks, warmup + 1)) / static_cast<double>(p.chunks);
    }
  }
  return 1;
}

}  // namespace sweep::shape
