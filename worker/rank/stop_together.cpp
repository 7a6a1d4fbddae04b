#include "worker/rank/stop_together.h"

#include <cstdlib>
#include <string>

namespace sweep::rank {
namespace {

constexpr const char* kKey = "last";
constexpr i64 kAhead = 2;

}  // namespace

StopTogether::StopTogether(const Attempt& attempt, i64 rank, comm::GroupOptions meeting)
    : early_(attempt.stop_above_ms), rank_(rank) {
  if (!early_.in_force() || attempt.processes() == 1) return;
  meeting.name = "stop";
  meeting.world = static_cast<int>(attempt.processes());
  store_ = comm::group_store(meeting, "early");
}

std::optional<i64> StopTogether::announced() const {
  if (!store_->check({kKey})) return std::nullopt;
  const auto bytes = store_->get(kKey);
  return std::atoll(std::string(bytes.begin(), bytes.end()).c_str());
}

bool StopTogether::after(const StepSample& sample) {
  if (!early_.in_force()) return false;
  ++done_;
  if (!sample.warmup) early_.add(sample.step_ns);
  if (!store_) return early_.is_clear();
  if (rank_ != 0 && !last_) last_ = announced();
  if (rank_ == 0 && !last_ && early_.is_clear()) {
    last_ = done_ + kAhead;
    const std::string text = std::to_string(*last_);
    store_->set(kKey, std::vector<std::uint8_t>(text.begin(), text.end()));
  }
  return last_ && done_ >= *last_;
}

}  // namespace sweep::rank
