#include "worker/command/announcement.h"

#include <chrono>
#include <utility>

#include "base/files.h"
#include "base/time.h"

namespace sweep::command {
namespace {

constexpr double kAskEvery = 0.5;  // seconds between questions to the store, which the head agent answers
// Seconds after a question without an answer: the rank shows no progress while it waits.
constexpr double kAskAgain = 30;
constexpr auto kAnswerWithin = std::chrono::seconds(10);

}  // namespace

Announcement::Announcement(const RankLaunch& launch, const std::string& name)
    : address_(launch.store),
      key_("command/" + name),
      file_(std::filesystem::path(launch.rendezvous_dir) / name),
      carries_(!launch.store.empty() && launch.local_rank == 0) {}

double Announcement::settle_s() const {
  return address_.empty() ? kAskEvery : 4 * kAskEvery;
}

// Null: there is no store, or it is not yet time for the next question.
StoreClient* Announcement::store(bool at_once) {
  if (!at_once && steady_s() < next_s_) return nullptr;
  next_s_ = steady_s() + kAskEvery;
  if (!std::exchange(connected_, true))
    if (auto client = StoreClient::connect(address_)) store_.emplace(std::move(*client));
  return store_ ? &*store_ : nullptr;
}

bool Announcement::tell() {
  if (told_) return true;
  if (carries_) {
    StoreClient* to = store(!failed_);
    if (to == nullptr) return false;
    if (!to->set(key_, "1", kAnswerWithin)) return not_answered();
  }
  return told_ = files::write_atomically(file_, "").has_value();
}

bool Announcement::not_answered() {
  failed_ = true;
  next_s_ = steady_s() + kAskAgain;
  return false;
}

bool Announcement::ask(bool at_once) {
  StoreClient* from = store(at_once);
  if (from == nullptr) return false;
  const auto there = from->check({key_}, kAnswerWithin);
  return there ? *there : not_answered();
}

bool Announcement::is_told(bool at_once) {
  if (told_) return true;
  std::error_code ec;
  if (std::filesystem::exists(file_, ec)) return carries_ ? tell() : (told_ = true);
  if (!carries_ || !ask(at_once)) return false;
  return told_ = files::write_atomically(file_, "").has_value();
}

}  // namespace sweep::command
