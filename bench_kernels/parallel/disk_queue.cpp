#include "bench_kernels/parallel/disk_queue.h"

#include <utility>

namespace sweep::parallel {

DiskQueue::DiskQueue(ScratchFile& file) : file_(file), thread_([this] { work(); }) {}

DiskQueue::~DiskQueue() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

DiskQueue::Job DiskQueue::add(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return ++asked_;
}

DiskQueue::Job DiskQueue::read(void* to, std::int64_t bytes, std::int64_t offset) {
  return add([this, to, bytes, offset] { file_.read(to, bytes, offset); });
}

DiskQueue::Job DiskQueue::write(const void* from, std::int64_t bytes, std::int64_t offset) {
  return add([this, from, bytes, offset] { file_.write(from, bytes, offset); });
}

void DiskQueue::wait(Job job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= job || failed_; });
  if (failed_) std::rethrow_exception(failed_);
}

void DiskQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      job();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failed_) failed_ = failure;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace sweep::parallel
