// DataLoader: the tokens of one rank's steps from a file, which it writes first with the tokens of its batch: as token
// ids, or as text that it splits into tokens as it is read. A thread reads as many steps ahead as the trial says, or
// next() reads. It owns the file, which has no name, the thread and what is read ahead; what it holds is host memory.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "bench_kernels/parallel/scratch_file.h"
#include "bench_kernels/shape/byte_pairs.h"
#include "bench_kernels/step/batch.h"

namespace sweep::step {

class DataLoader {
 public:
  // folder: of the file; empty: that of temporary files. REQUIRES: data other than none, and no lengths.
  DataLoader(const Trial&, const shape::Place&, const TokenSource&, const std::filesystem::path& folder);
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // The batch of the next step, on the host. Waits for it; throws what the thread threw.
  Batch next();

 private:
  void write(const TokenSource&);
  std::vector<i64> read_tokens() const;
  Batch read() const;
  void read_ahead();

  Trial trial_;
  shape::Place place_;
  i64 first_row_, tokens_;  // first global row; tokens held: seq_len + 1 for each sequence
  std::optional<shape::BytePairs> table_;
  parallel::ScratchFile file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  bool ends_ = false;
  std::exception_ptr failed_;
  std::thread thread_;
};

}  // namespace sweep::step
