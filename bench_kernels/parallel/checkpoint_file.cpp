#include "bench_kernels/parallel/checkpoint_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::parallel {
namespace {

constexpr ScratchUse kCheckpointUse = in_checkpoint_folder("checkpoint", "the checkpoint");

}  // namespace

CheckpointFile::CheckpointFile(std::vector<const ModelState*> states, CheckpointOptions options)
    : states_(std::move(states)), options_(std::move(options)) {}

CheckpointFile::~CheckpointFile() {
  if (thread_.joinable()) thread_.join();
}

at::Tensor CheckpointFile::host_room(std::int64_t elements, const at::Tensor& like) {
  const auto bytes = elements * static_cast<std::int64_t>(like.element_size());
  if (options_.host_limit && host_bytes_ + bytes > *options_.host_limit)
    throw memory::HostMemoryRefused(bytes);
  host_bytes_ += bytes;
  const memory::HostScope host;
  const auto where = like.is_meta() ? at::kMeta : at::kCPU;
  return at::empty({elements}, at::TensorOptions(where).dtype(like.scalar_type()));
}

void CheckpointFile::take(const Piece& piece, bool copies) {
  Entry entry{piece, bytes_, piece.values.numel(), piece.values.scalar_type()};
  if (copies) {
    entry.piece.values = host_room(entry.elements, piece.values);
    entry.piece.values.copy_(piece.values);
    beat();
  }
  bytes_ += static_cast<std::int64_t>(piece.values.nbytes());
  entries_.push_back(std::move(entry));
}

void CheckpointFile::begin() {
  const at::NoGradGuard no_grad;
  const bool copies = options_.kind != CheckpointKind::kSharded;
  const auto take_piece = [&](const Piece& piece) { take(piece, copies); };
  for (const ModelState* state : states_)
    options_.kind == CheckpointKind::kFull ? state->pieces().gathered(take_piece)
                                           : state->pieces().saved(take_piece);
  if (!options_.writes) return;
  file_.emplace(0, options_.folder, kCheckpointUse);
  if (options_.kind != CheckpointKind::kAsync) return write_all([this] { beat(); });
  thread_ = std::thread([this] {
    try {
      write_all([] {});
    } catch (...) {
      failed_ = std::current_exception();
    }
  });
}

void CheckpointFile::finish() {
  if (thread_.joinable()) thread_.join();
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

void CheckpointFile::write_all(const std::function<void()>& written) {
  for (Entry& entry : entries_) {
    write(entry);
    written();
  }
  file_->sync();
  on_disk_ = std::chrono::steady_clock::now();
}

// Numbers of a device come by way of host memory, some at a time.
void CheckpointFile::write(Entry& entry) {
  const at::Tensor values = std::exchange(entry.piece.values, {});
  if (values.is_cpu())
    return file_->write(values.const_data_ptr(), static_cast<std::int64_t>(values.nbytes()), entry.offset);
  const auto width = static_cast<std::int64_t>(values.element_size());
  const std::int64_t most = std::min(entry.elements, kStaged / width);
  const at::Tensor staged = memory::empty_on_host({most}, values.options());
  host_bytes_ = std::max(host_bytes_, most * width);
  for (std::int64_t at = 0; at < entry.elements; at += most) {
    const std::int64_t size = std::min(most, entry.elements - at);
    at::Tensor room = staged.narrow(0, 0, size);
    room.copy_(values.narrow(0, at, size));
    file_->write(room.const_data_ptr(), size * width, entry.offset + at * width);
  }
}

at::Tensor CheckpointFile::read(const Entry& entry) const {
  at::Tensor values = at::empty({entry.elements}, entry.type);
  file_->read(values.mutable_data_ptr(), static_cast<std::int64_t>(values.nbytes()), entry.offset);
  return values;
}

}  // namespace sweep::parallel
