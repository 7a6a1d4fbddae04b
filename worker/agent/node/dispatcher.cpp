#include "worker/agent/node/dispatcher.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>

#include "base/time.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::agent {

Dispatcher::Dispatcher(boost::asio::io_context& io, const Options& options, const AgentLife& life,
                       Mailbox& mailbox, AttemptNodes& nodes, AgentControl& control)
    : io_(io),
      life_(life),
      mailbox_(mailbox),
      nodes_(nodes),
      control_(control),
      node_count_(options.nodes),
      placement_(options.nodes, options.slots),
      time_(options.time_limit_s, steady_s()) {}

void Dispatcher::push(Attempt attempt) {
  if (life_.leaves()) return send_cancelled(attempt.id, EndCause::kCancelled);
  if (const auto why = unplaceable(attempt, node_count_); !why.empty())
    return send_not_started(attempt.id, EndCause::kStartFailed, why);
  placement_.push(std::move(attempt));
}

void Dispatcher::send_not_started(i64 attempt, EndCause cause, const std::string& why) {
  AttemptEnd end;
  end.attempt = attempt;
  end.cause = cause;
  end.evidence.why = why;
  end.started_unix_ns = end.ended_unix_ns = unix_ns_now();
  mailbox_.send(spool::kAttemptEnd, to_json(end));
}

void Dispatcher::send_cancelled(i64 attempt, EndCause cause) {
  send_not_started(attempt, cause,
                   life_.leaves() ? "cancelled before it started: its agent is ending: " + life_.reason()
                                  : "cancelled before it started");
}

// An attempt that cannot end before the allocation does is not started: it stays pending, and another
// allocation runs it.
void Dispatcher::cancel_late() {
  while (const Attempt* next = placement_.next()) {
    if (time_.allows(*next, steady_s())) return;
    const double takes_s = time_.estimate(*next);
    send_not_started(
        next->id, EndCause::kNoTime,
        takes_s > 0 ? fmt::format("not started: it would take about {:.3g} s, and the allocation ends before",
                                  takes_s)
                    : std::string("not started: the allocation is about to end"));
    placement_.drop_next();
  }
}

void Dispatcher::drop_waiting(EndCause cause) {
  while (placement_.next() != nullptr) send_cancelled(placement_.drop_next().id, cause);
}

void Dispatcher::start_waiting() {
  // A full disk must not pile up more to write.
  if (!life_.takes_work() || mailbox_.backlog()) return;
  cancel_late();
  while (auto placed = placement_.take()) {
    if (running_.contains(placed->attempt.id)) {  // posted twice
      placement_.release(*placed);
      continue;
    }
    running_.start(std::make_unique<DistributedAttempt>(
        nodes_, mailbox_, std::move(*placed), [this](DistributedAttempt& done) { finished(done); }));
    cancel_late();
  }
  leave_if_stuck();
}

// Too many nodes get no more work: what runs goes on, what waits may run elsewhere.
void Dispatcher::leave_if_stuck() {
  if (life_.takes_work() && placement_.stuck()) control_.too_few_nodes();
}

void Dispatcher::finished(DistributedAttempt& attempt) {
  for (const i64 node : attempt.unclean_nodes()) {
    node_unclean_ = true;
    placement_.give_up(node);
  }
  placement_.release(attempt.placed());
  attempt.tell(placement_.trust());
  if (const auto bad = placement_.trust().bad_node())
    give_up(*bad, "several attempts in a row failed there before their first step, and none elsewhere did",
            false);
  if (const auto unfit = attempt.unfit_node()) leave_out(*unfit, attempt.why_unfit());
  if (attempt.ended_by_itself())
    time_.ended(attempt.placed().attempt, steady_s() - running_.started_s(attempt.id()));
  leave_if_stuck();
  boost::asio::post(io_, [this, id = attempt.id()] {
    running_.erase(id);
    start_waiting();
    control_.leave_when_done();
  });
}

// The others go on without it. The last one, and a head that cannot write its outbox, have nobody to go on.
void Dispatcher::leave_out(i64 node, const std::string& why) {
  if (life_.leaves()) return;
  const bool goes_on = placement_.usable_count() > (placement_.usable(node) ? 1 : 0) && !mailbox_.backlog();
  if (goes_on) return give_up(node, why, false);
  boost::asio::post(io_, [this, why] {
    if (!life_.leaves()) control_.stop(why, EndCause::kAgentStopping, false);
  });
}

bool Dispatcher::out_of_time() const {
  return time_.over(steady_s());
}

void Dispatcher::node_unusable(i64 node) {
  placement_.give_up(node);
  start_waiting();
}

void Dispatcher::give_up(i64 node, const std::string& why, bool lost) {
  if (!placement_.usable(node)) return;
  placement_.give_up(node);
  spdlog::warn("{} gets no more work: {}", nodes_.name(node), why);
  mailbox_.send(spool::kNodeOut, to_json(NodeOut{node, why, lost}));
}

void Dispatcher::node_lost(i64 node, const std::string& why) {
  give_up(node, why, true);
  running_.node_lost(node, why);
  start_waiting();
}

}  // namespace sweep::agent
