#include "worker/agent/node/agent_limits.h"

#include <spdlog/spdlog.h>

#include "schema/spool.h"

namespace sweep::agent {
namespace {

// Ticks of the agent, 50 ms each: 5 s.
constexpr int kTicksForDisk = 100;
constexpr int kTicksGone = 100;
// Seconds for which lines may wait in memory: nothing is started meanwhile, and the orchestrator hears nothing.
constexpr double kUnwrittenLimit = 60;

}  // namespace

AgentLimits::AgentLimits(const Options& options, double now_s)
    : options_(options), contact_s_(now_s), busy_s_(now_s) {}

std::optional<std::string> AgentLimits::exceeded(const Activity& activity, double now_s) {
  if (orchestrator_silent(now_s)) {
    spdlog::warn("no orchestrator was in contact for {} s", options_.contact_limit_s);
    return "orchestrator silent";
  }
  if (!activity.unwritten) unwritten_s_.reset();
  if (activity.unwritten && !unwritten_s_) unwritten_s_ = now_s;
  if (unwritten_s_ && now_s - *unwritten_s_ > kUnwrittenLimit) return "disk full";
  if (activity.busy) busy_s_ = now_s;
  if (activity.last_line_s) busy_s_ = std::max(busy_s_, *activity.last_line_s);
  if (options_.idle_limit_s > 0 && now_s - busy_s_ > options_.idle_limit_s) return "idle";
  // Attempts end a little before the scheduler would end them, so that the ranks' records are written.
  if (activity.out_of_time) return "time limit";
  return std::nullopt;
}

// A bridge touches a file while an orchestrator is at its other end. Who relies on that sets a limit: after
// it, the orchestrator no longer counts on this allocation.
bool AgentLimits::orchestrator_silent(double now_s) {
  if (options_.contact_limit_s <= 0) return false;
  std::error_code ec;
  const auto touched = std::filesystem::last_write_time(spool::contact(options_.spool), ec);
  if (!ec && touched != contact_file_) {
    contact_file_ = touched;
    contact_s_ = now_s;
  }
  return now_s - contact_s_ > options_.contact_limit_s;
}

bool AgentLimits::mailbox_lost(bool gone) {
  ticks_without_mailbox_ = gone ? ticks_without_mailbox_ + 1 : 0;
  return ticks_without_mailbox_ == kTicksGone;
}

bool AgentLimits::disk_given_up() {
  return ++ticks_unwritten_ >= kTicksForDisk;
}

}  // namespace sweep::agent
