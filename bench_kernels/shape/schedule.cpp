#include "bench_kernels/shape/schedule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "bench_kernels/shape/schedule_times.h"

namespace sweep::shape {
namespace {

// One forward then one backward after `warmup` forwards, until both lists are done.
ActionList one_by_one(const ActionList& forward, const ActionList& backward, i64 warmup) {
  ActionList order;
  order.reserve(forward.size() + backward.size());
  const std::size_t ahead = std::min(static_cast<std::size_t>(warmup), forward.size());
  order.insert(order.end(), forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (std::size_t i = 0; i < backward.size(); ++i) {
    if (ahead + i < forward.size()) order.push_back(forward[ahead + i]);
    order.push_back(backward[i]);
  }
  return order;
}

// Micro-batches go in groups of `ranks` through all chunks of a rank, the chunks of backward from the last.
ActionList in_groups(const Pipeline& p, Act act) {
  ActionList list;
  list.reserve(static_cast<std::size_t>(p.micros * p.chunks));
  for (i64 first = 0; first < p.micros; first += p.ranks)
    for (i64 turn = 0; turn < p.chunks; ++turn)
      for (i64 micro = first; micro < first + p.ranks; ++micro)
        list.push_back({act, act == Act::kForward ? turn : p.chunks - 1 - turn, micro});
  return list;
}

ActionList in_order(const Pipeline& p, Act act) {
  ActionList list;
  list.reserve(static_cast<std::size_t>(p.micros));
  for (i64 micro = 0; micro < p.micros; ++micro) list.push_back({act, 0, micro});
  return list;
}

// Weight parts run `rank` backwards late and fill what would be waiting: the later the stage, the more of
// them are put off; no rank holds more micro-batches than 1f1b's first.
ActionList with_late_weights(const ActionList& order, i64 rank) {
  ActionList out;
  out.reserve(2 * order.size());
  i64 backwards = 0, weights = 0;
  for (const Action& action : order) {
    out.push_back(action);
    if (action.act == Act::kBackward && ++backwards > rank)
      out.push_back({Act::kBackwardWeight, 0, weights++});
  }
  while (weights < backwards) out.push_back({Act::kBackwardWeight, 0, weights++});
  return out;
}

// A message, or a computation, at its place in the order of the whole pipeline.
struct Posted {
  double time = 0;
  i64 number = 0;
  Action action;
};

bool earlier(const Posted& a, const Posted& b) {
  return std::tie(a.time, a.number) < std::tie(b.time, b.number);
}

// Places messages in the list of a rank. A send is posted as soon as its result is there. With one chunk a
// receive comes one computation before the one that needs it, in the order of the messages with its peer: ranks
// need not run at the planned pace then, and no circle can close, since each peer is a neighbour in the line. With
// several chunks the line is a ring: all messages keep one order, whichever their peers, and a receive comes
// before the computation that the other end runs at that time.
ActionList with_messages(const Pipeline& p, i64 rank, const std::vector<Span>& spans,
                         std::vector<Posted> messages) {
  std::sort(messages.begin(), messages.end(), earlier);
  std::vector<ActionList> before(spans.size() + 1);  // messages before each computation, and at the end
  const bool ring = p.chunks > 1;
  std::map<i64, std::size_t> last;  // place of the last message with each peer; in a ring, of all
  for (const Posted& m : messages) {
    const Act user = m.action.act == Act::kRecvForward ? Act::kForward : Act::kBackward;
    const auto next = sends(m.action.act) || ring
                          ? std::partition_point(spans.begin(), spans.end(),
                                                 [&](const Span& span) { return span.start < m.time; })
                          : std::find_if(spans.begin(), spans.end(), [&](const Span& span) {
                              return span.action == Action{user, m.action.chunk, m.action.micro};
                            });
    const auto needed = static_cast<std::size_t>(next - spans.begin());
    std::size_t& place = last[ring ? 0 : peer_of(p, rank, m.action)];
    place = std::max(place, sends(m.action.act) || needed == 0 ? needed : needed - 1);
    before[place].push_back(m.action);
  }
  ActionList out;
  for (std::size_t i = 0; i <= spans.size(); ++i) {
    out.insert(out.end(), before[i].begin(), before[i].end());
    if (i < spans.size()) out.push_back(spans[i].action);
  }
  return out;
}

// The message that sends on the result of a computation of that rank, if there is one.
std::optional<Act> result_goes(const Pipeline& p, i64 rank, const Action& a) {
  const i64 stage = p.stage(rank, a.chunk);
  if (a.act == Act::kForward && stage + 1 < p.stages()) return Act::kSendForward;
  if (a.act == Act::kBackward && stage > 0) return Act::kSendBackward;
  return std::nullopt;
}

}  // namespace

ActionList computations(const Pipeline& p, i64 rank) {
  const i64 behind = p.ranks - 1 - rank;
  switch (p.kind) {
    case Schedule::kGpipe:
      return one_by_one(in_order(p, Act::kForward), in_order(p, Act::kBackward), p.micros);
    case Schedule::k1f1b:
      return one_by_one(in_order(p, Act::kForward), in_order(p, Act::kBackward), behind);
    case Schedule::kInterleaved:
      return one_by_one(in_groups(p, Act::kForward), in_groups(p, Act::kBackward),
                        p.chunks == 1 ? behind : 2 * behind + (p.chunks - 1) * p.ranks);
    case Schedule::kZeroBubble:
      return with_late_weights(one_by_one(in_order(p, Act::kForward), in_order(p, Act::kBackward), behind),
                               rank);
  }
  return {};
}

Pipeline Pipeline::of(const Trial& t) {
  return {t.schedule, t.pp, t.grad_accum, t.vpp};
}

i64 peer_of(const Pipeline& p, i64 rank, const Action& a) {
  const i64 stage = p.stage(rank, a.chunk);
  const bool down = a.act == Act::kSendForward || a.act == Act::kRecvBackward;
  return p.rank_of(down ? stage + 1 : stage - 1);
}

i64 message_number(const Pipeline& p, i64 rank, const Action& a) {
  const bool forward = a.act == Act::kSendForward || a.act == Act::kRecvForward;
  // Named by the upper of the two stages it connects.
  const bool lower = a.act == Act::kRecvForward || a.act == Act::kSendBackward;
  const i64 upper = p.stage(rank, a.chunk) - (lower ? 1 : 0);
  return (a.micro * p.stages() + upper) * 2 + (forward ? 0 : 1);
}

std::vector<ActionList> make_schedule(const Pipeline& p) {
  std::vector<ActionList> order;
  for (i64 rank = 0; rank < p.ranks; ++rank) order.push_back(computations(p, rank));
  if (p.stages() == 1) return order;
  // Whole numbers for each chunk: messages of the same time must compare as equal.
  const auto chunks = static_cast<double>(p.chunks);
  const auto spans = run_computations(p, order, Costs{chunks, 2 * chunks, chunks});
  std::vector<std::vector<Posted>> messages(order.size());
  for (i64 rank = 0; rank < p.ranks; ++rank) {
    for (const Span& span : spans[static_cast<std::size_t>(rank)]) {
      const auto send = result_goes(p, rank, span.action);
      if (!send) continue;
      const bool down = *send == Act::kSendForward;
      const i64 other = p.stage(rank, span.action.chunk) + (down ? 1 : -1);
      const Action sent{*send, span.action.chunk, span.action.micro};
      const Action received{down ? Act::kRecvForward : Act::kRecvBackward, other / p.ranks,
                            span.action.micro};
      const Posted message{span.end, message_number(p, rank, sent), sent};
      messages[static_cast<std::size_t>(rank)].push_back(message);
      messages[static_cast<std::size_t>(p.rank_of(other))].push_back(
          {message.time, message.number, received});
    }
  }
  std::vector<ActionList> schedule;
  for (std::size_t rank = 0; rank < order.size(); ++rank)
    schedule.push_back(with_messages(p, static_cast<i64>(rank), spans[rank], std::move(messages[rank])));
  return schedule;
}

i64 micros_with_same_peak(const Pipeline& p) {
  if (p.kind == Schedule::kGpipe) return p.micros;
  if (p.ranks == 1) return std::min<i64>(p.micros, 2);
  const i64 turns = p.kind == Schedule::kInterleaved ? p.chunks + 3 : 4;
  return std::min(p.micros, turns * p.ranks);
}

std::optional<ShortSteps> short_steps(const Pipeline& p) {
  const i64 most = std::max(micros_with_same_peak(p), 4 * p.ranks);
  if (p.micros <= 2 * most) return std::nullopt;
  return ShortSteps{most - 2 * p.ranks, most - p.ranks, most};
}

}  // namespace sweep::shape
