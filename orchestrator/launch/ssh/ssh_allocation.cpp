#include "orchestrator/launch/ssh/ssh_allocation.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <cassert>
#include <nlohmann/json.hpp>

namespace sweep::launch {

namespace {

constexpr double kAfterSilence = 20;  // seconds for agents that end themselves, beyond their own limit

}  // namespace

SshAllocation::SshAllocation(SshSurroundings& around, AllocationRequest request, std::vector<SshHost> hosts)
    : around_(around),
      request_(std::move(request)),
      hosts_(around, request_, std::move(hosts)),
      mail_(request_) {}

SshAllocation::~SshAllocation() = default;

// Every change of state is made here.
void SshAllocation::handle(SshEvent event) {
  const auto next = next_state(state_, event);
  assert(next && "illegal event: see ssh_state.h");
  if (next) state_ = *next;
  if (is_over(state_)) hosts_.stop();
}

Expected<void> SshAllocation::start() {
  hosts_.report_to(*this, weak_from_this());
  if (auto opened = mail_.open(); !opened) return opened;
  if (auto kept = hosts_.keep_record(); !kept) return kept;
  hosts_.prepare();
  return {};
}

Expected<void> SshAllocation::adopt(const nlohmann::json& record) {
  hosts_.report_to(*this, weak_from_this());
  if (auto opened = mail_.open(); !opened) return opened;
  if (hosts_.adopt(record)) {
    handle(SshEvent::kAdopted);
    connect();
    return {};
  }
  // Started processes are ended, and the next allocation begins anew.
  boost::asio::post(around_.io, [self = shared_from_this()] {
    self->failed("the run that started it ended before its agents served");
  });
  return {};
}

// The record is kept before anything is started.
void SshAllocation::hosts_ready() {
  if (auto kept = hosts_.keep_record(); !kept) return failed(kept.error().message);
  handle(SshEvent::kHostsReady);
  hosts_.start();
}

void SshAllocation::head_started() {
  handle(SshEvent::kHeadStarted);
  connect();
}

void SshAllocation::host_failed(const std::string& host, const std::string& why) {
  clean_up({request_.id, fmt::format("{}: {}", host, why), true, false, host});
}

void SshAllocation::connect() {
  bridge_ = std::make_unique<SshMailboxClient>(
      around_.io, around_.shell, hosts().front().name, hosts_.bridge_line(), request_.spool,
      around_.options.silence_seconds.value + kAfterSilence, static_cast<MailboxEvents&>(*this));
  bridge_->start();
}

void SshAllocation::mailbox_attached() {
  if (is_over(state_)) return;
  const bool again = state_ == SshState::kServing;
  handle(SshEvent::kAttached);
  if (again) return;
  Started out;
  out.id = request_.id;
  for (const auto& host : hosts()) out.hosts.push_back(host.name);
  out.where = fmt::format("{}", fmt::join(out.hosts, ", "));
  around_.say(out);
  outbox_grew();
}

void SshAllocation::outbox_grew() {
  while (state_ == SshState::kServing || state_ == SshState::kCleaningUp) {
    auto more = mail_.news();
    if (!more) return;
    around_.say(*more);
  }
}

void SshAllocation::agent_gone() {
  outbox_grew();
  const auto bye = mail_.bye();
  clean_up({request_.id, bye ? bye->reason : "the head agent ended without a last message", !bye});
}

void SshAllocation::notice(const std::string& text) {
  if (!ended()) around_.say(Notice{request_.id, text});
}

Expected<i64> SshAllocation::post(std::string_view kind, const nlohmann::json& body) {
  if (ended()) return fail(fmt::format("allocation {} has ended", request_.id));
  auto posted = mail_.post(kind, body);
  if (posted && bridge_) bridge_->push();
  return posted;
}

void SshAllocation::clean_up(Ended end) {
  const bool already = is_over(state_);
  handle(SshEvent::kStopped);
  if (already) return;
  const auto ours = mail_.ours();
  if (ours && !*ours) return abandon();
  if (bridge_) bridge_->stop();
  end_ = std::move(end);
  if (ours) return hosts_.clean_up();
  // Another process may run its agents: they are left alone.
  end_.lost = true;
  end_.reason = fmt::format("{}; its agents were not ended: {}", end_.reason, ours.error().message);
  boost::asio::post(around_.io, [self = shared_from_this()] { self->hosts_cleaned(); });
}

// First comes the rest of what its agents wrote, which arrived after the connection was lost.
void SshAllocation::hosts_cleaned() {
  outbox_grew();
  handle(SshEvent::kCleanedUp);
  if (state_ == SshState::kEnded) around_.say(end_);
}

void SshAllocation::abandon() {
  handle(SshEvent::kAbandoned);
  hosts_.abandon();
  if (bridge_) bridge_->stop();
}

}  // namespace sweep::launch
