#include "orchestrator/run/losses.h"

#include <fmt/format.h>

namespace sweep::run {

namespace {

std::string why_lost(const HeldAllocation& held, const launch::Ended& ended) {
  if (!held.too_short_s) return ended.reason;
  return fmt::format(
      "no waiting trial fits the {:.0f} of {:.0f} s that were left when its agents were ready; request more "
      "time for each allocation",
      *held.too_short_s, held.total_s);
}

}  // namespace

Expected<void> Losses::begin() {
  SWEEP_GET(const auto excluded, context_.store.excluded_hosts(context_.settings.sweep));
  for (const auto& [launcher, host, why] : excluded) {
    if (launcher != context_.settings.launcher) continue;
    for (const auto& text : hosts_.excluded(host, why)) context_.observer.on_note(text);
  }
  return {};
}

Expected<std::optional<std::string>> Losses::lost(const HeldAllocation& held, const launch::Ended& ended,
                                                  i64 others_at_work) {
  const auto now = context_.now();
  const Settings& settings = context_.settings;
  const std::string reason = why_lost(held, ended);
  SWEEP_TRY(
      context_.note(EventKind::kAllocationLost, fmt::format("allocation {} was lost: {}", ended.id, reason)));
  // No host is to blame for too little time, and no scheduler.
  const Loss loss{ended.preempted || held.too_short_s, held.had_time(now) && !held.too_short_s,
                  !ended.host.empty(), held.results, others_at_work};
  const auto decision =
      decide_loss(loss, counts_, {settings.max_consecutive_losses, settings.max_consecutive_preemptions});
  counts_ = decision.counts;
  if (decision.cool_down) hosts_.cool_down(ended.host, now);
  if (decision.count_against_host) {
    const Hosts hosts = loss.host_known ? Hosts{{0, ended.host}} : held.hosts;
    for (const auto& text : hosts_.lost(hosts, reason, now))
      SWEEP_TRY(context_.note(EventKind::kQuarantine, text));
  }
  return decision.breaker ? std::optional(sentence(*decision.breaker, reason)) : std::nullopt;
}

std::string Losses::sentence(Breaker breaker, const std::string& last_reason) const {
  const Settings& settings = context_.settings;
  if (breaker == Breaker::kPreemptions)
    return fmt::format(
        "{} allocations in a row were preempted or cancelled without one result; the last one: {}. The "
        "trials stay pending; `sweep resume` goes on",
        counts_.preemptions, last_reason);
  const bool remote = settings.allocate_per_shape;
  return fmt::format(
      "{} allocations in a row were lost without one result; the last one: {}. "
      "The trials stay pending; `sweep doctor{}` checks {}",
      counts_.losses, last_reason, remote ? " --on " + settings.launcher : "",
      remote ? "what it takes" : "this machine");
}

}  // namespace sweep::run
