// Queue: attempts waiting for slots, first in first out. An attempt starts when its ranks fit beside the
// running ones; one that needs more than all slots runs alone. Nobody overtakes, so a large attempt is never
// starved.
#pragma once
#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "schema/attempt.h"

namespace sweep::agent {

class Queue {
 public:
  explicit Queue(i64 slots) : slots_(slots) {}

  void push(Attempt attempt) { waiting_.push_back(std::move(attempt)); }
  // The next attempt, if it may start now; it holds its ranks' slots until release().
  std::optional<Attempt> take() {
    if (waiting_.empty()) return std::nullopt;
    const i64 need = waiting_.front().trial.world();
    if (held_ > 0 && held_ + need > slots_) return std::nullopt;
    Attempt next = std::move(waiting_.front());
    waiting_.pop_front();
    held_ += need;
    return next;
  }
  void release(const Attempt& attempt) { held_ -= attempt.trial.world(); }
  // Takes a waiting attempt out; none: it is not waiting.
  std::optional<Attempt> remove(i64 id) {
    const auto at =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const Attempt& a) { return a.id == id; });
    if (at == waiting_.end()) return std::nullopt;
    Attempt out = std::move(*at);
    waiting_.erase(at);
    return out;
  }
  std::optional<i64> first() const {
    return waiting_.empty() ? std::nullopt : std::optional<i64>(waiting_.front().id);
  }
  bool empty() const { return waiting_.empty(); }

 private:
  i64 slots_;
  i64 held_ = 0;
  std::deque<Attempt> waiting_;
};

}  // namespace sweep::agent
