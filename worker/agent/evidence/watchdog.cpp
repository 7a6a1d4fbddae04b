// The separate deadlines of start-up, first step, later steps, what surrounds them, and the whole.
#include "worker/agent/evidence/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace sweep::agent {

namespace {
constexpr double kLongestLook = 1.0;  // seconds one look may add; see the header
constexpr double kExitLimit = 10.0;   // seconds between the record and the exit, where step_s is longer

std::vector<i64> first_numbers(i64 count) {
  std::vector<i64> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}
}  // namespace

Watchdog::Watchdog(const Deadlines& deadlines, std::vector<i64> names)
    : deadlines_(deadlines), ranks_(names.size()), names_(std::move(names)) {}

Watchdog::Watchdog(const Deadlines& deadlines, i64 ranks) : Watchdog(deadlines, first_numbers(ranks)) {}

double Watchdog::limit(Phase phase) const {
  if (phase > Phase::kDone) return deadlines_.around_s;
  if (phase < Phase::kFirstStep) return deadlines_.startup_s;
  if (phase == Phase::kFirstStep) return deadlines_.first_step_s;
  if (phase == Phase::kDone) return std::min(deadlines_.step_s, kExitLimit);
  return deadlines_.step_s;
}

Watchdog::Finding Watchdog::finding(std::size_t index) const {
  const auto& [seen, idle_s] = ranks_[index];
  const i64 name = names_[index];
  return {seen.phase == Phase::kDone ? Verdict::kDoesNotExit : Verdict::kHang, name,
          fmt::format("rank {} made no progress in phase {} for {:.1f} s (allowed: {:.1f} s)", name,
                      to_string(seen.phase), idle_s, limit(seen.phase))};
}

std::optional<std::size_t> Watchdog::waited_for() const {
  std::optional<std::size_t> out;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto& [seen, idle_s] = ranks_[i];
    const bool silent = seen.alive && seen.phase != Phase::kDone && idle_s >= limit(seen.phase) / 2;
    if (silent && seen.awaited.none() && (!out || idle_s > ranks_[*out].idle_s)) out = i;
  }
  return out;
}

void Watchdog::reset_idle() {
  for (Watched& rank : ranks_) rank.idle_s = 0;
}

std::optional<Watchdog::Finding> Watchdog::look(const std::vector<Heartbeat>& seen, double now_s) {
  const double passed = std::clamp(now_s - last_look_s_.value_or(now_s), 0.0, kLongestLook);
  last_look_s_ = now_s;
  total_s_ += passed;
  std::optional<std::size_t> named;
  std::pair<bool, double> worst;  // whether it waits for no other rank; seconds past its deadline
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Watched& rank = ranks_[i];
    if (seen[i] == rank.last)
      rank.idle_s += passed;
    else
      rank.idle_s = 0;
    rank.last = seen[i];
    const std::pair late(seen[i].awaited.none(), rank.idle_s - limit(seen[i].phase));
    if (!seen[i].alive || late.second <= 0 || (named && late <= worst)) continue;
    worst = late, named = i;
  }
  if (named) return finding(worst.first ? *named : waited_for().value_or(*named));
  if (total_s_ > deadlines_.total_s)
    return Finding{Verdict::kTimeout, names_.front(),
                   fmt::format("the attempt took longer than the {:.1f} s it was given", deadlines_.total_s)};
  return std::nullopt;
}

}  // namespace sweep::agent
