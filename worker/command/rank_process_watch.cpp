#include "worker/command/rank_process_watch.h"

#include <poll.h>

#include <cstdlib>
#include <limits>

#include "base/proc.h"
#include "base/process.h"
#include "base/time.h"
#include "runtime/attempt_token.h"

namespace sweep::command {
namespace {

// A peer that loses its connection may report its error before this rank is scheduled and sees the end. What ends by
// an error of a peer ends later than this after it: its launcher looks for ended processes ten times a second.
constexpr i64 kSeenLaterNs = 20'000'000;

bool is_of_this_attempt(i64 pid, i64 rank) {
  const char* token = std::getenv(kAttemptVariable);
  const auto environment = proc::Environment::of(std::to_string(pid));
  return token != nullptr && environment.value(kAttemptVariable) == token &&
         environment.value("RANK") == std::to_string(rank);
}

}  // namespace

void RankProcessWatch::follow(const TrainerReport& report) {
  const auto pid = report.identity().pid;
  if (!pid || pid == pid_ || ended_unix_ns_) return;
  pid_ = pid;
  handle_.reset();
  if (*pid <= 1 || *pid > std::numeric_limits<pid_t>::max() || !is_of_this_attempt(*pid, rank_)) return;
  handle_.emplace(open_pidfd(static_cast<pid_t>(*pid)));
}

std::optional<i64> RankProcessWatch::ended_unix_ns() {
  pollfd ready{handle(), POLLIN, 0};
  if (!ended_unix_ns_ && ready.fd >= 0 && ::poll(&ready, 1, 0) == 1)
    ended_unix_ns_ = unix_ns_now() - kSeenLaterNs;
  return ended_unix_ns_;
}

}  // namespace sweep::command
