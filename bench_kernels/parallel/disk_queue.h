// DiskQueue: a thread that reads and writes a ScratchFile in the order in which it is asked, so that a step never waits in
// a system call for the disk, only for bytes that are not there yet. It owns the thread; the file and the memory are
// the caller's, and stay until the job is done.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "bench_kernels/parallel/scratch_file.h"

namespace sweep::parallel {

class DiskQueue {
 public:
  // Jobs are counted from 1; 0 is none, which is done.
  using Job = std::uint64_t;

  explicit DiskQueue(ScratchFile&);
  // Waits for all jobs.
  ~DiskQueue();
  DiskQueue(const DiskQueue&) = delete;
  DiskQueue& operator=(const DiskQueue&) = delete;

  Job read(void* to, std::int64_t bytes, std::int64_t offset);
  Job write(const void* from, std::int64_t bytes, std::int64_t offset);
  // Returns when this job and all before it are done. Throws what one of them threw.
  void wait(Job);

 private:
  Job add(std::function<void()>);
  void work();

  ScratchFile& file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  Job asked_ = 0, done_ = 0;
  bool ends_ = false;
  std::exception_ptr failed_;
  std::thread thread_;
};

}  // namespace sweep::parallel
