#include "orchestrator/launch/batch/job_lifecycle.h"

#include <fmt/format.h>

#include <cassert>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/launch/batch/batch_script.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::launch {

using State = BatchJobState;
using On = BatchJobEvent;

JobLifecycle::JobLifecycle(BatchHost& host, AllocationRequest request)
    : host_(host), request_(std::move(request)), mail_(request_), born_s_(host.now_s()) {}

void JobLifecycle::handle(BatchJobEvent event, BatchOutcome outcome) {
  const auto next = next_state(state_, event);
  assert(next && "illegal event: see batch_state.h");
  if (!next) return;
  if (event == On::kGivenUp) decided_ = outcome;
  if (state_ == State::kCancelling && event != On::kBye) outcome = decided_;
  const bool reports = has_ended(*next) && !ended() && event != On::kAbandoned;
  if (reports) dismiss();
  state_ = *next;
  if (reports) host_.report(Ended{request_.id, std::move(outcome.reason), outcome.lost, outcome.preempted});
}

void JobLifecycle::give_up(BatchOutcome outcome) {
  handle(On::kGivenUp, std::move(outcome));
  cancel();
}

void JobLifecycle::cancel() {
  if (closed()) return;
  const auto ours = mail_.ours();
  if (ours && !*ours) return;
  if (cancel_ == Cancel::kNotWanted) cancel_ = Cancel::kWanted;
  if (!ours) return host_.poll_soon();  // again after the next query
  dismiss();
  if (state_ == State::kWaitingForRoom) return host_.poll_soon();
  if (!identity_.number || cancel_ == Cancel::kUnderWay) return;
  cancel_ = Cancel::kUnderWay;
  host_.start(order_cancel(shared_from_this()));
}

awaitable<void> JobLifecycle::order_cancel(std::shared_ptr<JobLifecycle>) {
  if (closed()) co_return;  // the event loop may come here late: the host may be gone
  const bool worked = co_await host_.scheduler().cancel(key());
  cancel_ = Cancel::kWanted;
  if (worked) host_.poll_soon();  // else: again after the next query
}

// The scheduler may be wrong: after it lost its state it can list a running job as waiting or ended, and an
// agent that was stopped can go on. An agent that still lives, or starts later, finds this in its inbox.
void JobLifecycle::dismiss() {
  if (dismissed_ || mail_.bye()) return;
  dismissed_ = post(spool::kFinish, to_json(Finish{true})).has_value();
}

Expected<i64> JobLifecycle::post(std::string_view kind, const nlohmann::json& body) {
  if (ended()) return fail(fmt::format("allocation {} has ended", request_.id));
  return mail_.post(kind, body);
}

void JobLifecycle::remark(std::string text) {
  if (text == remarked_) return;
  remarked_ = text;
  host_.report(Notice{request_.id, std::move(text)});
}

Expected<void> JobLifecycle::keep_record() const {
  const Scheduler& scheduler = host_.scheduler();
  nlohmann::json own = {
      {"name", key().name}, {"job", nullptr}, {"standing", scheduler.existing_job().value_or(0)}};
  if (identity_.number) own["job"] = *identity_.number;
  return launch::keep_record(request_, scheduler.record(), std::move(own));
}

std::optional<std::string> JobLifecycle::waits_too_long() const {
  const auto limit = host_.scheduler().longest_wait_s();
  if (!limit || host_.now_s() - born_s_ <= *limit) return std::nullopt;
  return fmt::format("waited longer than {} min", *limit / 60);
}

std::string JobLifecycle::title() const {
  return fmt::format("{} job {}", host_.scheduler().name(),
                     identity_.number ? std::to_string(*identity_.number) : key().name);
}

JobKey JobLifecycle::key() const {
  return {batch_job_name(request_.id), identity_.number, identity_.adopted};
}

}  // namespace sweep::launch
