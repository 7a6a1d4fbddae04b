// What the run loop asks for, hands out and takes in.
#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/plan/planner.h"
#include "orchestrator/plan/rehearsal.h"
#include "orchestrator/run/in_flight.h"
#include "orchestrator/run/recovery.h"
#include "orchestrator/run/sweep_runner.h"

namespace sweep::run {

// Over all allocations of this run: trials that take ten times as long as foretold are worth ten times the nodes.
double SweepRunner::pace() const {
  SlowdownEstimate all = past_;
  for (const auto& [id, holding] : held_) all.add(holding.pace(clock_.now()));
  return all.factor();
}

// Pending trials by what they need, at the pace so far; on this machine all of them need the same.
Expected<std::vector<store::Demand>> SweepRunner::demand() {
  auto groups = backlog_.demand();
  if (!groups || groups->empty()) return groups;
  for (const double factor = pace(); auto& group : *groups)
    group.predicted_s *= factor, group.longest_s *= factor;
  if (settings_.allocate_per_shape) return groups;
  store::Demand all;
  for (const auto& group : *groups) all.trials += group.trials, all.predicted_s += group.predicted_s;
  return std::vector<store::Demand>{all};
}

std::vector<Capacity> SweepRunner::capacities(Clock::Point now) const {
  std::vector<Capacity> out;
  const double target = target_seconds(settings_.bounds), factor = pace();
  for (const auto& [id, held] : held_) {
    const double left = held.finishing ? 0 : std::min(target, held.seconds_left(now, target));
    const auto nodes = static_cast<double>(held.request.nodes);
    const i64 gpus = settings_.allocate_per_shape ? held.request.ranks_per_node : 1;
    out.push_back({settings_.allocate_per_shape ? held.request.hardware : "", held.request.nodes, gpus,
                   left * nodes - factor * held.flights.seconds()});
  }
  return out;
}

// Asks for what the pending trials are worth; ends the run when nothing is held and nothing may be asked for.
void SweepRunner::obtain() {
  let_back();
  const bool rests =
      !cooling_hosts().empty();  // looked at first: what is passed over for it below is waited for
  bool waits = false;
  if (!end_ && !error_ && room_for_more()) {
    const auto groups = demand();
    if (!groups) return fatal(groups.error());
    ask_for(*groups);
    if (error_) return;
    auto beyond = beyond_hosts(*groups);
    if (!beyond) beyond = beyond_bounds(*groups, settings_.bounds);
    if (held_.empty() && beyond) end_ = RunEnd{End::kBroken, *beyond};
    waits = rests && !end_ && !groups->empty();
  }
  if (held_.empty() && !waits) io_.stop();
}

i64 SweepRunner::nodes_held() const {
  i64 nodes = 0;
  for (const auto& [id, holding] : held_) nodes += holding.request.nodes;
  return nodes;
}

bool SweepRunner::room_for_more() const {
  const auto& bounds = settings_.bounds;
  return held_.empty() || (static_cast<i64>(held_.size()) < bounds.max_allocations &&
                           (bounds.max_nodes <= 0 || nodes_held() < bounds.max_nodes));
}

void SweepRunner::request(const Wanted& wanted) {
  auto row = store_.create_allocation(settings_.sweep, settings_.launcher, settings_.spool_root);
  if (!row) return fatal(row.error());
  HeldAllocation holding;
  holding.request.id = row->id, holding.request.spool = row->spool;
  holding.request.incarnation = row->incarnation, holding.request.outbox_offset = row->offset;
  holding.request.nodes = wanted.nodes, holding.request.slots = settings_.slots;
  if (settings_.allocate_per_shape) {
    holding.request.hardware = wanted.hardware;
    holding.request.ranks_per_node = wanted.gpus_per_node;
    holding.request.gpus = wanted.gpus(settings_.slots);
    holding.request.seconds = wanted.seconds;
    holding.request.avoid = avoided();
  }
  std::error_code ec;
  std::filesystem::create_directories(row->spool, ec);
  Expected<void> asked;
  held_[row->id] = holding;
  if (ec)
    asked =
        tl::unexpected(Error{fmt::format("{}: the spool folder cannot be made: {}", row->spool, ec.message()),
                             ec == std::errc::no_space_on_device});
  else
    asked = launcher_->request(holding.request);
  if (asked) return;
  stored(store_.end_allocation(row->id, asked.error().message));
  held_.erase(row->id);
  fatal(asked.error());
}

void SweepRunner::finish(HeldAllocation& holding, bool now) {
  if (left_) return;
  holding.finishing = true;
  if (auto told = launcher_->finish(holding.request.id, now); !told) launcher_->kill(holding.request.id);
}

void SweepRunner::finish_all(bool now) {
  std::vector<std::string> ids;  // a launcher may end one while it is told
  for (const auto& [id, holding] : held_) ids.push_back(id);
  for (const auto& id : ids)
    if (const auto found = held_.find(id); found != held_.end()) finish(found->second, now);
}

void SweepRunner::fill() {
  for (auto& [id, holding] : held_) fill(holding);
}

void SweepRunner::fill(HeldAllocation& holding) {
  if (settings_.judge_node && !holding.joined && !holding.adopted && !end_ && !error_) return;
  while (holding.started && !holding.finishing && !end_ && !error_) {
    const auto more = wants_more(holding);
    if (!more) return fatal(more.error());
    if (!*more || !post_one(holding)) break;
  }
  if (holding.flights.size() == 0 && holding.started && !holding.finishing)
    finish(holding, end_.has_value() || error_.has_value());
}

// Its nodes are to be busy and its inbox a little ahead, but with no more than its part of what is left to do: none
// stands idle while trials queue in another one.
Expected<bool> SweepRunner::wants_more(const HeldAllocation& holding) {
  const i64 has = holding.flights.nodes();
  if (has < holding.width()) return true;
  if (has >= holding.width() + holding.ahead(clock_.now(), settings_.ahead)) return false;
  if (held_.size() == 1) return true;
  const auto waiting = backlog_.waiting_nodes(holding.request.hardware);
  if (!waiting) return tl::unexpected(waiting.error());
  i64 work = *waiting, width = 0;
  for (const auto& [id, each] : held_) {
    if (each.finishing || each.request.hardware != holding.request.hardware) continue;
    work += each.flights.nodes(), width += each.width();
  }
  return has < holding.width() * work / width;
}

// Allocations still in the queue that no pending trial waits for any more.
void SweepRunner::release_unwanted() {
  std::vector<std::string> unwanted;
  for (const auto& [id, holding] : held_) {
    if (holding.started || holding.finishing || holding.flights.size() > 0) continue;
    const auto waiting = backlog_.next(fit_of(holding), 1, [](const PlanEntry&) { return true; });
    if (!waiting) return fatal(waiting.error());
    if (!*waiting) unwanted.push_back(id);
  }
  for (const auto& id : unwanted) finish(held_.at(id), false);
}

std::optional<store::Fit> SweepRunner::fit_of(const HeldAllocation& holding) const {
  if (!settings_.allocate_per_shape) return std::nullopt;
  return store::Fit{holding.request.nodes, holding.request.hardware, holding.request.ranks_per_node};
}

// Commits the next attempt, then appends it to the inbox. False: nothing to post.
bool SweepRunner::post_one(HeldAllocation& holding) {
  constexpr i64 kLookAhead = 16;  // trials that do not fit the time that is left are passed over
  const auto now = clock_.now();
  const double factor = pace();
  const auto next =
      backlog_.next(fit_of(holding), holding.until ? kLookAhead : 1,
                    [&](const PlanEntry& entry) { return holding.has_time_for(entry, now, factor); });
  if (!next) return fatal(next.error()), false;
  if (!*next) return false;
  if (auto posted = post(holding, **next); !posted) return fatal(posted.error()), false;
  return true;
}

Expected<void> SweepRunner::post(HeldAllocation& holding, const PlanEntry& entry) {
  Attempt wanted;
  wanted.trial_id = entry.id;
  wanted.trial = entry.trial;
  wanted.measure = settings_.measure;
  wanted.deadlines = plan::deadlines_for(entry.predicted, wanted.trial, wanted.measure);
  if (settings_.hang_seconds)
    wanted.deadlines.startup_s = wanted.deadlines.first_step_s = wanted.deadlines.step_s =
        *settings_.hang_seconds;
  if (settings_.trial_seconds) wanted.deadlines.total_s = *settings_.trial_seconds;
  wanted.start = settings_.start;
  if (settings_.rehearse_most) {
    auto ranks = plan::rehearsed_ranks(entry.trial, *settings_.rehearse_most);
    if (!ranks) return tl::unexpected(ranks.error());
    wanted.rehearsed_ranks = std::move(*ranks);
  }
  if (entry.predicted.seconds) wanted.predicted_s = *entry.predicted.seconds * pace();
  if (const auto price = settings_.usd_per_node_hour.find(wanted.trial.hardware);
      price != settings_.usd_per_node_hour.end())
    wanted.usd_per_node_hour = price->second;
  auto attempt = store_.begin_attempt(settings_.sweep, holding.request.id, wanted);
  if (!attempt) return tl::unexpected(attempt.error());
  backlog_.handed_out(entry);
  holding.flights.add(*attempt, entry);
  auto posted = launcher_->post_attempt(holding.request.id, *attempt);
  if (!posted) return tl::unexpected(posted.error());
  return {};
}

void SweepRunner::on_event(const launch::Event& event) {
  if (const auto* started = std::get_if<launch::Started>(&event)) on_started(*started);
  if (const auto* outbox = std::get_if<launch::Outbox>(&event)) on_outbox(*outbox);
  if (const auto* ended = std::get_if<launch::Ended>(&event)) on_ended(*ended);
  if (const auto* remark = std::get_if<launch::Notice>(&event)) note("launcher", remark->text);
}

void SweepRunner::note(const std::string& kind, const std::string& text) {
  observer_.on_note(text);
  stored(store_.add_event(settings_.sweep, kind, text));
}

void SweepRunner::on_started(const launch::Started& started) {
  const auto found = held_.find(started.id);
  if (found == held_.end()) return;
  HeldAllocation& holding = found->second;
  holding.started = true;
  for (const auto& host : started.hosts) holding.hosts[static_cast<i64>(holding.hosts.size())] = host;
  holding.watched = clock_.now();
  const double held_s = std::max(started.held_s, holding.held_before_s);
  holding.since = clock_.now() - span_of(held_s);
  if (started.seconds_left) {
    holding.until = clock_.now() + span_of(*started.seconds_left);
    holding.lasts_s = started.held_s + *started.seconds_left;
  }
  stored(store_.allocation_started(started.id, started.where, started.pid,
                                   {holding.request.nodes, holding.gpus_each(), held_s}));
  if (settings_.allocate_per_shape)
    observer_.on_note(
        fmt::format("allocation {} of {} nodes runs: {}", started.id, holding.request.nodes, started.where));
  fill(holding);
}

void SweepRunner::on_outbox(const launch::Outbox& outbox) {
  const auto found = held_.find(outbox.id);
  if (error_ || found == held_.end()) return;  // its bytes stay in the outbox for close_after_failure()
  HeldAllocation& holding = found->second;
  auto absorbed = holding.flights.ingest_chunk(outbox.id, outbox.offset, outbox.bytes);
  if (!stored(store_.ingest(absorbed.batch))) return;
  launcher_->acknowledge(outbox.id, absorbed.batch.new_offset);
  for (const auto& node : absorbed.batch.nodes) on_node(holding, node);
  for (const auto& text : absorbed.notes) note("agent", text);
  for (const auto& landing : absorbed.landed) land(holding, landing);
  if (absorbed.unclean) unclean(holding, absorbed);
  if (!absorbed.landed.empty()) snapshot_if_due();
  fill(holding);
}

// What the agents' look at the nodes found, where there was one.
void SweepRunner::seen_slow(const std::string& host, const NodeRecord& node) {
  const auto why = slow_in_screen(node);
  if (why.empty()) return;
  note("screen", fmt::format("node {} stands out: {}", host, why));
  if (!settings_.exclude_slow_hosts) return;
  for (const auto& sentence : quarantine_.slow(host, why)) note("quarantine", sentence);
}

// A process could not be ended: no more work for this allocation, nor for its node.
void SweepRunner::unclean(HeldAllocation& holding, const InFlightAttempts::IngestedChunk& absorbed) {
  for (const auto& end : absorbed.batch.ends)
    if (!end.clean)
      for (const auto& sentence : quarantine_.unclean(holding.hosts, end)) note("quarantine", sentence);
  if (!holding.finishing) finish(holding, false);
}

void SweepRunner::land(HeldAllocation& holding, const FinishedAttempt& landing) {
  if (!is_always_final(landing.result.outcome)) backlog_.changed();
  observer_.on_result(landing.flight.entry, landing.result);
  if (landing.result.outcome == Outcome::kCancelled) return given_back(holding, landing);
  ++holding.landed;
  holding.foretold_s += foretold_seconds(landing.flight.entry);
  consecutive_losses_ = consecutive_preemptions_ = 0;
}

// An agent that is leaving (a signal, lost nodes, the word of a run before this one) cancels whatever it is handed.
void SweepRunner::given_back(HeldAllocation& holding, const FinishedAttempt& landing) {
  if (end_ || error_ || holding.finishing) return;  // asked for
  const auto& word = landing.flight.testimony.end;
  if (word && word->cause == EndCause::kNoTime && holding.landed > 0) return finish(holding, false);
  holding.gave_back = true;
  note("agent", fmt::format("allocation {} gets no more work: attempt {} came back ({})", holding.request.id,
                            landing.flight.attempt.id, landing.result.reason));
  finish(holding, false);
}

// After a failure to store: what the outboxes still hold is taken in and the allocations closed as far as it goes; what
// does not go stays open in the database, and the next run closes it.
void SweepRunner::close_after_failure() {
  if (auto closed = recover(store_, settings_.sweep, observer_); !closed)
    observer_.on_note("the allocation stays open, the next run closes it: " + closed.error().message);
  io_.stop();
}

void SweepRunner::on_ended(const launch::Ended& ended) {
  const auto found = held_.find(ended.id);
  if (found == held_.end()) return;
  HeldAllocation holding = std::move(found->second);
  held_.erase(found);
  spent_gpu_s_ += holding.gpu_seconds(clock_.now());
  past_.add(holding.pace(clock_.now()));
  if (error_) return held_.empty() ? close_after_failure() : void();
  const bool unfinished = holding.flights.size() > 0 || holding.gave_back;
  if (unfinished) backlog_.changed();
  for (const InFlightAttempt& flight : holding.flights.abandon()) {
    const bool preempted = end_ || ended.preempted || !flight.started;  // what only waited burns no retry
    const Outcome outcome = preempted ? Outcome::kCancelled : Outcome::kNodeLost;
    stored(store_.finish_attempt(abandoned(flight.attempt, outcome, ended.reason)));
  }
  if (!close_allocation(holding, ended.reason)) return held_.empty() ? close_after_failure() : void();
  if (!end_ && (ended.lost || unfinished || ended.preempted)) on_lost(holding, ended);
  obtain();
}

// One of an earlier run that ended while nobody watched has held its nodes until its last word.
bool SweepRunner::close_allocation(const HeldAllocation& holding, const std::string& reason) {
  const auto& request = holding.request;
  if (holding.started || !holding.adopted)
    return stored(store_.end_allocation(request.id, reason)) && !error_;
  if (!stored(store_.end_allocation(request.id, reason, last_word_unix_ns(request.spool)))) return false;
  const auto rows = store_.allocations(settings_.sweep);
  if (!rows) return fatal(rows.error()), false;
  for (const auto& row : *rows)
    if (row.id == request.id)
      spent_gpu_s_ += row.held_s * static_cast<double>(request.nodes * holding.gpus_each());
  return !error_;
}

void SweepRunner::on_lost(const HeldAllocation& holding, const launch::Ended& ended) {
  constexpr std::string_view kLost = "lost: ";
  const auto why = ended.reason.substr(ended.reason.starts_with(kLost) ? kLost.size() : 0);
  note("allocation_lost", fmt::format("allocation {} was lost: {}", ended.id, why));
  const bool named = !ended.host.empty();
  if (named) cooling_hosts_[ended.host] = clock_.now() + span_of(settings_.host_cooldown_s);
  if (holding.landed > 0) return;
  if (!ended.preempted) out_for_now(named ? Hosts{{0, ended.host}} : holding.hosts, why);
  if (named) return;  // who is at fault is known, and soon out
  if (ended.preempted && holding.had_time(clock_.now())) {
    if (++consecutive_preemptions_ < settings_.max_consecutive_preemptions) return;
    return end_with(End::kBroken,
                    fmt::format("{} allocations in a row were preempted or cancelled without one result; the "
                                "last one: {}. The trials stay pending; `sweep resume` goes on",
                                consecutive_preemptions_, why),
                    false);
  }
  // Three of sixty that work say little of the machine.
  const auto at_work = std::ranges::count_if(
      held_, [](const auto& each) { return each.second.started && !each.second.finishing; });
  if (++consecutive_losses_ < std::max<i64>(settings_.max_consecutive_losses, at_work + 1)) return;
  end_with(
      End::kBroken,
      fmt::format("{} allocations in a row were lost without one result; the last one: {}. "
                  "The trials stay pending; `sweep doctor{}` checks {}",
                  consecutive_losses_, why, settings_.allocate_per_shape ? " --on " + settings_.launcher : "",
                  settings_.allocate_per_shape ? "what it takes" : "this machine"),
      false);
}

}  // namespace sweep::run
