#include "worker/agent/node/rank_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "schema/spool.h"
#include "worker/agent/process/spawn.h"

namespace sweep::agent {
namespace {

// False: it has no flight recorder, as a rank without NCCL.
bool ask_for_flight(const std::filesystem::path& pipe) {
  const int fd = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  const bool asked = ::write(fd, "d", 1) == 1;
  ::close(fd);
  return asked;
}

}  // namespace

RankProcesses::~RankProcesses() {
  if (leader_ > 0) ::kill(-leader_, SIGKILL);
}

void RankProcesses::reset(const NodePart& part) {
  ranks_.clear();
  ranks_.resize(static_cast<std::size_t>(part.ranks));
  for (i64 index = 0; index < part.ranks; ++index)
    ranks_[static_cast<std::size_t>(index)].rank = part.rank(index);
}

void RankProcesses::open_logs(const std::filesystem::path& attempt_dir, i64 limit_bytes) {
  for (RankProcess& each : ranks_)
    each.log = std::make_unique<RankLog>(spool::rank_log(attempt_dir, each.rank), limit_bytes);
}

Expected<void> RankProcesses::make_group() {
  SWEEP_GET(leader_, spawn_anchor());
  return {};
}

bool RankProcesses::all_answered() const {
  return std::ranges::all_of(ranks_, &RankProcess::answered);
}

bool RankProcesses::all_ended() const {
  return std::ranges::all_of(ranks_, [](const RankProcess& each) { return each.ended || each.pid == 0; });
}

std::vector<i64> RankProcesses::pids() const {
  std::vector<i64> out;
  for (const RankProcess& each : ranks_) {
    if (each.pid > 0) out.push_back(each.pid);
    if (each.outside_pid > 0) out.push_back(each.outside_pid);
  }
  return out;
}

bool RankProcesses::leader_ended(pid_t pid) {
  if (pid <= 0 || pid != leader_) return false;
  leader_ = 0;
  return true;
}

RankProcess* RankProcesses::running_as(pid_t pid) {
  const auto found =
      std::ranges::find_if(ranks_, [&](const RankProcess& each) { return each.pid == pid && !each.ended; });
  return pid > 0 && found != ranks_.end() ? &*found : nullptr;
}

void RankProcesses::mark_killed() {
  for (RankProcess& each : ranks_)
    if (!each.ended) each.killed_by_agent = true;
}

void RankProcesses::terminate() {
  mark_killed();
  if (leader_ <= 0) return;
  ::kill(-leader_, SIGTERM);
  ::kill(-leader_, SIGCONT);
}

void RankProcesses::kill() {
  if (leader_ <= 0) return;
  mark_killed();
  ::kill(-leader_, SIGKILL);
}

void RankProcesses::ask_for_flights(const std::filesystem::path& rendezvous) {
  for (RankProcess& each : ranks_)
    each.asked = !each.ended && ask_for_flight(spool::flight_request(rendezvous, each.rank));
}

bool RankProcesses::flights_written(const std::filesystem::path& attempt_dir) const {
  return std::ranges::none_of(ranks_, [&](const RankProcess& each) {
    std::error_code ec;
    return each.asked && !each.ended &&
           !std::filesystem::exists(spool::flight_trace(attempt_dir, each.rank), ec);
  });
}

}  // namespace sweep::agent
