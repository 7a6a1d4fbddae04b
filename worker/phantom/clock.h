// Clocks: the modelled time of this process: one host clock, one clock per stream. Work is kept in the order
// of its stream and ends at a modelled time; work behind a meeting with other ranks ends when they have come.
// Nothing waits for modelled time to pass. Deterministic where the program is (docs/phantom.md, "Time").
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "worker/phantom/busy_time.h"
#include "worker/phantom/description.h"

namespace sweep::phantom {

struct Capture;

// A point in a stream's work, as an event records it.
struct Mark {
  bool done = false;
  Ns at = 0;
  Ns not_before = 0;                // known before it is done
  std::weak_ptr<Capture> captured;  // recorded into this capture
};
using MarkPtr = std::shared_ptr<Mark>;

// Something that other processes take part in.
class Meeting {
 public:
  virtual ~Meeting() = default;
  virtual void issue() = 0;  // it takes its place in the order of its communicator
  // Called from when its stream has come to it at `ready`, until it answers when it ended.
  virtual std::optional<Ns> poll(Ns ready) = 0;
  virtual Ns least() const = 0;  // its duration where no rank is late
  virtual std::shared_ptr<Meeting> again() const = 0;
};

struct Work {
  Ns host = 0, lasts = 0;
  MarkPtr wait, record;
  std::shared_ptr<Meeting> meeting;
  std::function<void()> act;     // data that moves
  std::function<void()> caller;  // the program's own function: called without the lock
};

// Work recorded in stream capture, to be launched as a graph: one after another, whatever its streams were.
struct Capture {
  std::uint64_t id = 0;
  std::vector<Work> work;
};

struct Stream {
  int device = 0, priority = 0;
  Ns now = 0, not_before = 0;
  bool calling = false;
  std::deque<Work> queue;
  std::shared_ptr<Capture> capture;
};

class Clocks {
 public:
  static Clocks& get();

  Stream* make(int device, int priority);
  Stream* default_of(int device);
  bool knows(const Stream* stream);
  void spend(Ns host);  // host time
  void add(Stream& stream, Work work, Ns host_cost);
  void record(Stream& stream, const MarkPtr& mark, Ns host_cost);
  // Whether the host would see it done. The thread that watches only (it never added work) sees what is, and
  // moves no clock; another one sees what the modelled clocks say.
  bool query(const MarkPtr& mark);
  bool query(Stream& stream);
  // Waits for real until it is done; the host's clock goes there.
  void wait_for(const MarkPtr& mark);
  void synchronize(Stream& stream);
  void synchronize_device(int device);
  // Waits, with the lock given up between, until the other processes have made it true; whether they have.
  bool wait_until(const std::function<bool()>& met, int limit_ms = -1);
  bool times(const MarkPtr& from, const MarkPtr& to, Ns& elapsed);
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  void progress(std::unique_lock<std::mutex>& lock);
  void leave(const std::shared_ptr<Capture>& capture);  // the streams that had joined it
  void watch();  // begins the thread that answers peers while the program does other things

 private:
  void push(std::unique_lock<std::mutex>& lock, Stream& stream, Work work);
  bool advance(std::unique_lock<std::mutex>& lock, Stream& stream);
  Ns work(Ns host);  // adds work of the host; returns its clock afterwards
  void finish(Stream& stream, Ns begin, Ns end);
  bool wait_real(std::unique_lock<std::mutex>& lock, const std::function<bool()>& met, int limit_ms);
  std::mutex mutex_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> default_, pending_;
  std::vector<BusyTime> busy_ = std::vector<BusyTime>(16);
  Ns host_ = 0;
  int patience_ms_ = 5000;  // left for answers that depend on peers which have not come
  bool watched_ = false;
};

}  // namespace sweep::phantom
