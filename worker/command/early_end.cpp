#include "worker/command/early_end.h"

#include <chrono>

#include "base/files.h"
#include "base/time.h"

namespace sweep::command {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEndKey = "command/stop_early";
constexpr double kAskEvery = 0.5;  // seconds between questions to the store, which the head agent answers
constexpr auto kAnswerWithin = std::chrono::seconds(10);

}  // namespace

EarlyEnd::EarlyEnd(const Attempt& attempt, const RankLaunch& launch)
    : stop_(attempt.stop_above_ms),
      warmup_(attempt.measure.warmup_steps),
      decides_(launch.rank == 0),
      several_nodes_(!launch.store.empty()),
      file_(fs::path(launch.rendezvous_dir) / "stop_early") {
  if (!stop_.in_force() || !several_nodes_ || launch.local_rank != 0) return;
  // Without the store this node does not learn of an early end; rank 0 without it decides none.
  if (auto store = StoreClient::connect(launch.store)) store_.emplace(std::move(*store));
}

double EarlyEnd::settle_s() const {
  return several_nodes_ ? 4 * kAskEvery : 0.5;
}

bool EarlyEnd::judge(const std::vector<TrainerStep>& steps) {
  for (; judged_ < steps.size(); ++judged_)
    if (steps[judged_].ms && steps[judged_].number > warmup_)
      stop_.add(static_cast<i64>(*steps[judged_].ms * 1e6));
  if (!stop_.is_clear()) return false;
  return !several_nodes_ || (store_ && store_->set(kEndKey, "1", kAnswerWithin));
}

bool EarlyEnd::ask_store(bool at_once) {
  if (!at_once && steady_s() - asked_s_ < kAskEvery) return false;
  asked_s_ = steady_s();
  const auto there = store_->check({kEndKey}, kAnswerWithin);
  return there && *there;
}

bool EarlyEnd::announced(bool at_once) {
  return store_ ? ask_store(at_once) : fs::exists(file_);
}

bool EarlyEnd::is_due(const std::vector<TrainerStep>& steps, bool at_once) {
  if (!stop_.in_force() || due_) return due_;
  due_ = decides_ ? judge(steps) : announced(at_once);
  // Ranks of this node that do not ask the store look for the file. One that cannot be written leaves them to
  // run to their last step.
  if (due_ && (decides_ || store_)) due_ = files::write_atomically(file_, "").has_value();
  return due_;
}

}  // namespace sweep::command
