#include "bench_kernels/parallel/weights_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::parallel {
namespace {

constexpr ScratchUse kWeightsUse = in_checkpoint_folder("weights_load", "the weights");

std::int64_t bytes_of(const at::Tensor& t) {
  return static_cast<std::int64_t>(t.nbytes());
}

}  // namespace

WeightsFile::WeightsFile(std::vector<const ModelState*> states, WeightsFileOptions options)
    : states_(std::move(states)), options_(std::move(options)) {
  const bool writes = options_.kind == WeightsLoad::kSharded || options_.first;
  if (options_.reads && writes) file_.emplace(0, options_.folder, kWeightsUse);
}

std::int64_t WeightsFile::place(const Piece& piece) {
  const auto width = static_cast<std::int64_t>(piece.values.element_size());
  const auto [found, fresh] = begins_.try_emplace(piece.tensor, end_);
  if (fresh) end_ += piece.whole * width;
  return found->second + piece.begin * width;
}

// Some bytes of the piece at a time, where they are or in host memory: move(bytes, size, place in the file).
void WeightsFile::by_pieces(const Piece& piece, const std::function<void(at::Tensor, std::int64_t)>& move) {
  const std::int64_t begin = place(piece);
  if (!file_) return;
  const auto width = static_cast<std::int64_t>(piece.values.element_size());
  const std::int64_t most = piece.values.is_cpu() ? piece.values.numel() : kStaged / width;
  for (std::int64_t at = 0; at < piece.values.numel(); at += most) {
    move(piece.values.narrow(0, at, std::min(most, piece.values.numel() - at)), begin + at * width);
    beat();
  }
}

at::Tensor WeightsFile::host_room(const at::Tensor& like) {
  if (!staged_.defined()) staged_ = memory::empty_on_host({kStaged}, like.options().dtype(at::kByte));
  host_bytes_ = std::max(host_bytes_, kStaged);
  return staged_.view(like.scalar_type()).narrow(0, 0, like.numel());
}

void WeightsFile::write() {
  const at::NoGradGuard no_grad;
  const auto write_piece = [this](const Piece& piece) {
    by_pieces(piece, [this](const at::Tensor& part, std::int64_t at) {
      const at::Tensor host = part.is_cpu() ? part : host_room(part).copy_(part);
      file_->write(host.const_data_ptr(), bytes_of(host), at);
    });
  };
  for (const ModelState* state : states_)
    options_.kind == WeightsLoad::kRank0 ? state->gathered_weights(write_piece)
                                         : state->kept_weights(write_piece);
  if (!file_) return;
  file_->sync();
  file_->forget_cached();
}

void WeightsFile::load() {
  const at::NoGradGuard no_grad;
  if (options_.kind == WeightsLoad::kRank0) {
    read_whole();
    for (const ModelState* state : states_)
      state->spread_weights([this](const Piece& piece) { fill_piece(piece); });
    whole_.reset();
    return;
  }
  const auto read_piece = [this](const Piece& piece) {
    bytes_ += bytes_of(piece.values);
    by_pieces(piece, [this](const at::Tensor& part, std::int64_t at) {
      const at::Tensor host = part.is_cpu() ? part : host_room(part);
      file_->read(host.mutable_data_ptr(), bytes_of(host), at);
      if (!part.is_cpu()) at::Tensor(part).copy_(host);
    });
  };
  for (const ModelState* state : states_) state->kept_weights(read_piece);
}

// Rank 0: the whole file, as a loader that keeps it whole has it.
void WeightsFile::read_whole() {
  if (!options_.first) return;
  bytes_ = host_bytes_ = end_;
  if (options_.host_limit && end_ > *options_.host_limit) throw memory::HostMemoryRefused(end_);
  if (!file_) return;
  const memory::HostScope host;
  whole_ = at::empty({end_}, at::TensorOptions(at::kCPU).dtype(at::kByte));
  for (std::int64_t at = 0; at < end_; at += kStaged) {
    const at::Tensor part = whole_.narrow(0, at, std::min(kStaged, end_ - at));
    file_->read(part.mutable_data_ptr(), bytes_of(part), at);
    beat();
  }
}

void WeightsFile::fill_piece(const Piece& piece) {
  const auto width = static_cast<std::int64_t>(piece.values.element_size());
  const std::int64_t begin = place(piece);
  if (!whole_.defined()) return;
  at::Tensor(piece.values)
      .copy_(whole_.view(piece.values.scalar_type()).narrow(0, begin / width, piece.values.numel()));
  beat();
}

}  // namespace sweep::parallel
