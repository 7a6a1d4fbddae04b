#include "bench_kernels/shape/pipeline_time.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace sweep::shape {
namespace {

constexpr double kNotYet = -1;
constexpr i64 kWalkedTurns = 4;  // micro-batches over ranks, beyond which the steady state is continued

const std::vector<ActionList>& order_of(const Pipeline& p) {
  using Key = std::tuple<Schedule, i64, i64, i64>;
  constexpr std::size_t kMostKept = 256;
  thread_local std::map<Key, std::vector<ActionList>> kept;
  const Key key{p.kind, p.ranks, p.micros, p.chunks};
  if (const auto found = kept.find(key); found != kept.end()) return found->second;
  if (kept.size() >= kMostKept) kept.clear();
  auto& order = kept[key];
  for (i64 rank = 0; rank < p.ranks; ++rank) order.push_back(computations(p, rank));
  return order;
}

class Walk {
 public:
  Walk(const Pipeline& p, std::span<const StageSeconds> stages, double message_s)
      : p_(p),
        stages_(stages),
        message_s_(message_s),
        forward_(static_cast<std::size_t>(p.stages() * p.micros), kNotYet),
        backward_(forward_) {}

  double run() {
    const auto& order = order_of(p_);
    std::vector<std::size_t> next(order.size(), 0);
    double last = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < order.size(); ++rank)
        for (; next[rank] < order[rank].size(); ++next[rank], moved = true)
          if (!take(static_cast<i64>(rank), order[rank][next[rank]])) break;
    }
    for (const double clock : clock_) last = std::max(last, clock);
    return last;
  }

 private:
  double& at(std::vector<double>& done, i64 stage, i64 micro) const {
    return done[static_cast<std::size_t>(stage * p_.micros + micro)];
  }
  // False: its input is not there.
  bool take(i64 rank, const Action& a) {
    const i64 stage = p_.stage(rank, a.chunk), last = p_.stages() - 1;
    const StageSeconds& cost = stages_[static_cast<std::size_t>(stage)];
    const double backward = splits_backward(p_.kind) ? cost.backward / 2 : cost.backward;
    double& clock = clock_[static_cast<std::size_t>(rank)];
    if (a.act == Act::kBackwardWeight) {
      clock += backward;
      return true;
    }
    const bool forward = a.act == Act::kForward;
    double ready = 0;
    if (forward && stage > 0) ready = at(forward_, stage - 1, a.micro);
    if (!forward) ready = stage < last ? at(backward_, stage + 1, a.micro) : at(forward_, stage, a.micro);
    if (ready == kNotYet) return false;
    const bool travels = p_.ranks > 1 && (forward ? stage > 0 : stage < last);
    clock = std::max(clock, ready + (travels ? message_s_ : 0)) + (forward ? cost.forward : backward);
    at(forward ? forward_ : backward_, stage, a.micro) = clock;
    return true;
  }

  const Pipeline& p_;
  std::span<const StageSeconds> stages_;
  double message_s_;
  std::vector<double> forward_, backward_;  // when each was done
  std::vector<double> clock_ = std::vector<double>(static_cast<std::size_t>(p_.ranks), 0.0);
};

}  // namespace

double pipeline_seconds(const Pipeline& p, std::span<const StageSeconds> stages, double message_s) {
  const auto n = static_cast<double>(p.micros);
  if (p.ranks == 1) {
    double each = 0;
    for (const StageSeconds& s : stages) each += s.forward + s.backward;
    return n * each;
  }
  Pipeline walked = p;
  walked.micros = std::min(p.micros, kWalkedTurns * p.ranks + p.micros % p.ranks);
  const double seconds = Walk(walked, stages, message_s).run();
  if (walked.micros == p.micros) return seconds;
  Pipeline fewer = walked;
  fewer.micros -= p.ranks;
  const double turn = seconds - Walk(fewer, stages, message_s).run();
  return seconds + turn * static_cast<double>((p.micros - walked.micros) / p.ranks);
}

}  // namespace sweep::shape
