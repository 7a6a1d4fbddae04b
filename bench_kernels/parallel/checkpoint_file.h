// CheckpointFile: the weights and optimizer states of this rank's model on disk. full: gathered on rank 0, held there in
// host memory whole and then written; sharded: each rank writes the pieces that it saves; async: each copies them to
// host memory, and a thread writes them. It owns its host memory, thread and file; the file has no name and ends with
// its owner.
#pragma once
#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "bench_kernels/parallel/model_state.h"
#include "bench_kernels/parallel/scratch_file.h"
#include "schema/trial.h"

namespace sweep::parallel {

struct CheckpointOptions {
  CheckpointKind kind = CheckpointKind::kSharded;
  std::filesystem::path folder{};  // empty: that of temporary files
  bool writes = true;              // false: all but the file (dry runs, rehearsals)
  // Host memory that this rank may take for it; beyond that it throws memory::HostMemoryRefused.
  std::optional<std::int64_t> host_limit{};
  std::function<void()> beat{};  // told after each piece that is copied or written, from the calling thread
};

class CheckpointFile {
 public:
  // The states must outlive it.
  CheckpointFile(std::vector<const ModelState*> states, CheckpointOptions options);
  ~CheckpointFile();
  CheckpointFile(const CheckpointFile&) = delete;
  CheckpointFile& operator=(const CheckpointFile&) = delete;

  // Returns when training may go on; with async the thread still writes. A collective with full.
  void begin();
  // Waits until all bytes are on the disk. Throws what the thread threw.
  void finish();
  // When they were. REQUIRES: finish() returned, and there is a file.
  std::chrono::steady_clock::time_point on_disk() const { return on_disk_; }

  std::int64_t bytes() const { return bytes_; }            // bytes of this rank's file
  std::int64_t host_bytes() const { return host_bytes_; }  // the most that it held in host memory

  struct Entry {
    Piece piece;  // values are undefined once they are written
    std::int64_t offset = 0, elements = 0;
    at::ScalarType type = at::kFloat;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  // The bytes in the file. REQUIRES: finish() returned, and there is a file.
  at::Tensor read(const Entry&) const;
  std::int64_t file_size() const { return file_->size(); }

 private:
  void take(const Piece&, bool copies);
  at::Tensor host_room(std::int64_t elements, const at::Tensor& like);
  void write_all(const std::function<void()>& beat);
  void write(Entry&);
  void beat() const {
    if (options_.beat) options_.beat();
  }

  std::vector<const ModelState*> states_;
  CheckpointOptions options_;
  std::vector<Entry> entries_;
  std::int64_t bytes_ = 0, host_bytes_ = 0;
  std::optional<ScratchFile> file_;
  std::thread thread_;
  std::chrono::steady_clock::time_point on_disk_{};
  std::exception_ptr failed_;
};

}  // namespace sweep::parallel
