#include "worker/phantom/clock.h"

#include <sys/prctl.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "worker/phantom/bell.h"
#include "worker/phantom/counters.h"
#include "worker/phantom/node.h"

namespace sweep::phantom {
namespace {

// True if this thread has added work, or is one of autograd's, which ask before their first work.
thread_local bool adds_work = [] {
  char name[16] = {};
  ::prctl(PR_GET_NAME, name);
  return std::string_view(name).rfind("pt_autograd", 0) == 0;
}();
constexpr int kLongestQueryMs = 200;

}  // namespace

Clocks& Clocks::get() {
  static auto* clocks = new Clocks;  // outlives the program's own destructors
  return *clocks;
}

Stream* Clocks::make(int device, int priority) {
  const auto held = lock();
  streams_.push_back(std::make_unique<Stream>());
  streams_.back()->device = device;
  streams_.back()->priority = priority;
  return streams_.back().get();
}

Stream* Clocks::default_of(int device) {
  const auto at = static_cast<std::size_t>(device);
  {
    const auto held = lock();
    if (default_.size() <= at) default_.resize(at + 1);
    if (default_[at] != nullptr) return default_[at];
  }
  Stream* made = make(device, 0);
  const auto held = lock();
  if (default_[at] == nullptr) default_[at] = made;
  return default_[at];
}

bool Clocks::knows(const Stream* stream) {
  const auto held = lock();
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& s) { return s.get() == stream; });
}

void Clocks::spend(Ns host) {
  const auto held = lock();
  work(host);
}

Ns Clocks::work(Ns host) {
  host_ += host;
  counters().host_ns = host_;
  counters().host_work_ns += host;
  return host_;
}

// The time from `begin` to `end` is busy, once where streams overlap.
void Clocks::finish(Stream& stream, Ns begin, Ns end) {
  stream.now = end;
  BusyTime& busy = busy_[static_cast<std::size_t>(stream.device)];
  counters().busy_ns += busy.add(begin, end);
  counters().device_ns = std::max<Ns>(counters().device_ns, end);
  if (Node* node = Node::open())
    node->report_time(stream.device, busy.total(), std::max<Ns>(busy.until(), host_));
}

void Clocks::add(Stream& stream, Work work, Ns host_cost) {
  auto held = lock();
  adds_work = true;
  work.host = this->work(host_cost);
  if (work.wait && !stream.capture) stream.capture = work.wait->captured.lock();
  if (stream.capture) {
    if (work.record) work.record->captured = stream.capture;
    return stream.capture->work.push_back(std::move(work));
  }
  if (work.meeting) work.meeting->issue();
  Ns bound = std::max(stream.not_before, work.host);
  if (work.wait) bound = std::max(bound, work.wait->done ? work.wait->at : work.wait->not_before);
  bound += work.lasts + (work.meeting ? work.meeting->least() : 0);
  stream.not_before = bound;
  if (work.record) work.record->not_before = bound;
  push(held, stream, std::move(work));
}

void Clocks::push(std::unique_lock<std::mutex>& held, Stream& stream, Work work) {
  const bool plain = !work.wait && !work.meeting && !work.caller && stream.queue.empty() && !stream.calling;
  if (plain) {
    const Ns begin = work.lasts > 0 ? std::max(stream.now, work.host) : stream.now;
    if (work.lasts > 0) finish(stream, begin, begin + work.lasts);
    if (work.act) work.act();
    if (work.record) {
      work.record->at = std::max(stream.now, work.host);
      work.record->done = true;
    }
    return;
  }
  stream.queue.push_back(std::move(work));
  if (stream.queue.size() == 1) pending_.push_back(&stream);
  progress(held);
}

bool Clocks::advance(std::unique_lock<std::mutex>& held, Stream& stream) {
  bool moved = false;
  while (!stream.queue.empty() && !stream.calling) {
    Work& work = stream.queue.front();
    if (work.wait && !work.wait->done) break;
    const bool only_waits = !work.meeting && work.lasts == 0;
    Ns begin = only_waits ? stream.now : std::max(stream.now, work.host);
    if (work.wait) begin = std::max(begin, work.wait->at);
    Ns end = begin + work.lasts;
    if (work.meeting) {
      const auto met = work.meeting->poll(begin);
      if (!met) break;
      end = *met;
    }
    if (only_waits)
      stream.now = end;
    else
      finish(stream, begin, end);
    if (work.act) work.act();
    if (work.caller) {
      const auto call = std::move(work.caller);
      stream.calling = true;
      held.unlock();
      call();
      held.lock();
      stream.calling = false;
    }
    Work& done = stream.queue.front();
    if (done.record) {
      done.record->at = std::max(stream.now, done.host);
      done.record->done = true;
    }
    stream.queue.pop_front();
    moved = true;
  }
  return moved;
}

void Clocks::progress(std::unique_lock<std::mutex>& held) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < pending_.size(); ++i) moved |= advance(held, *pending_[i]);
    std::erase_if(pending_, [](const Stream* s) { return s->queue.empty(); });
  }
}

void Clocks::record(Stream& stream, const MarkPtr& mark, Ns host_cost) {
  Work work;
  work.record = mark;
  add(stream, std::move(work), host_cost);
}

bool Clocks::wait_real(std::unique_lock<std::mutex>& held, const std::function<bool()>& met, int limit_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    const auto rings = Bell::mine().rings();
    progress(held);
    if (met()) return true;
    if (limit_ms >= 0 && std::chrono::steady_clock::now() >= end) return false;
    held.unlock();
    Bell::mine().wait(rings, limit_ms >= 0 ? std::min(limit_ms, 20) : 20);
    held.lock();
  }
}

bool Clocks::query(const MarkPtr& mark) {
  auto held = lock();
  progress(held);
  if (!adds_work) return mark->done;
  ++counters().event_queries;
  bool known = mark->done;
  const Ns now = host_;
  work(description().profile.query_host);
  if (!known && mark->not_before > now) return false;
  if (!known) {  // the answer depends on ranks that are on their way: deterministic only if they are awaited
    const int limit = std::min(patience_ms_, kLongestQueryMs);
    known = limit > 0 && wait_real(
                             held, [&] { return mark->done; }, limit);
    if (!known) patience_ms_ -= limit;
  }
  return known && mark->at <= now;
}

bool Clocks::query(Stream& stream) {
  const auto mark = std::make_shared<Mark>();
  record(stream, mark, 0);
  return query(mark);
}

void Clocks::wait_for(const MarkPtr& mark) {
  auto held = lock();
  wait_real(
      held, [&] { return mark->done; }, -1);
  if (!adds_work) return;
  host_ = std::max(host_, mark->at);
  work(description().profile.sync_host);
}

void Clocks::synchronize(Stream& stream) {
  const auto mark = std::make_shared<Mark>();
  record(stream, mark, 0);
  wait_for(mark);
}

void Clocks::synchronize_device(int device) {
  std::vector<Stream*> streams;
  {
    const auto held = lock();
    for (const auto& stream : streams_)
      if (stream->device == device && !stream->capture) streams.push_back(stream.get());
  }
  std::vector<MarkPtr> marks;
  for (Stream* stream : streams) {
    marks.push_back(std::make_shared<Mark>());
    record(*stream, marks.back(), 0);
  }
  auto held = lock();
  for (const auto& mark : marks) {
    wait_real(
        held, [&] { return mark->done; }, -1);
    host_ = std::max(host_, mark->at);
  }
  work(description().profile.sync_host);
}

bool Clocks::wait_until(const std::function<bool()>& met, int limit_ms) {
  auto held = lock();
  return wait_real(held, met, limit_ms);
}

bool Clocks::times(const MarkPtr& from, const MarkPtr& to, Ns& elapsed) {
  auto held = lock();
  progress(held);
  if (!from->done || !to->done) return false;
  elapsed = to->at - from->at;
  return true;
}

void Clocks::leave(const std::shared_ptr<Capture>& capture) {
  const auto held = lock();
  for (const auto& stream : streams_)
    if (stream->capture == capture) stream->capture.reset();
}

void Clocks::watch() {
  {
    const auto held = lock();
    if (watched_) return;
    watched_ = true;
  }
  std::thread([this] {
    for (;;) {
      const auto rings = Bell::mine().rings();
      {
        auto held = lock();
        progress(held);
      }
      Bell::mine().wait(rings, 200);
    }
  }).detach();
}

}  // namespace sweep::phantom
