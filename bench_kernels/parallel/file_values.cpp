#include "bench_kernels/parallel/file_values.h"

#include <cstddef>
#include <utility>

#include "bench_kernels/parallel/flat.h"

namespace sweep::parallel {

namespace {

constexpr ScratchUse kUse{"offload disk_parameters", "the parameters",
                          "point TMPDIR to a folder with room, or use offload parameters"};

}  // namespace

void FileValues::keep(const at::Tensor& values) {
  State& state = states_.emplace_back();
  state.values = values, state.offset = bytes_;
  const auto bytes = static_cast<std::int64_t>(values.nbytes());
  bytes_ += bytes;
  if (!values.is_meta()) {
    if (!file_) {
      file_ = std::make_unique<ScratchFile>(0, std::filesystem::path(), kUse);
      queue_ = std::make_unique<DiskQueue>(*file_);
    }
    file_->write(values.const_data_ptr(), bytes, state.offset);
  }
  release(values);
}

void FileValues::expect(std::size_t b, bool read) {
  State& state = states_[b];
  if (leaving_ == b) leaving_.reset();  // its numbers are those of the file
  if (state.here) return;
  allocate_outside(state.values, device_);
  state.here = true;
  if (queue_ && read)
    state.job = queue_->read(state.values.mutable_data_ptr(),
                             static_cast<std::int64_t>(state.values.nbytes()), state.offset);
}

void FileValues::wait(State& state) {
  if (queue_) queue_->wait(std::exchange(state.job, 0));
}

void FileValues::arrive(std::size_t b) {
  wait(states_[b]);
}

void FileValues::leave(std::size_t b) {
  State& state = states_[b];
  if (!std::exchange(state.here, false)) return;
  wait(state);
  release(state.values);
}

void FileValues::save(std::size_t b) {
  settle();
  State& state = states_[b];
  if (queue_)
    state.job = queue_->write(state.values.const_data_ptr(), static_cast<std::int64_t>(state.values.nbytes()),
                              state.offset);
  leaving_ = b;
}

void FileValues::settle() {
  if (const auto last = std::exchange(leaving_, std::nullopt)) leave(*last);
}

}  // namespace sweep::parallel
