// WeightsFile: weights that a rank reads before its first step, from a file that the ranks write beforehand with the
// weights they have. rank0: the whole in one file, which rank 0 reads into host memory and sends on; sharded: each rank
// reads what it keeps from a file of its own. It owns file and host memory; the file has no name.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench_kernels/parallel/model_state.h"
#include "bench_kernels/parallel/scratch_file.h"
#include "schema/trial.h"

namespace sweep::parallel {

struct WeightsFileOptions {
  WeightsLoad kind = WeightsLoad::kSharded;
  // plain: of tensors that are kept in 4 bits the file has weights, which load() quantizes, tensor by tensor.
  WeightsFileForm form = WeightsFileForm::kPlain;
  bool first = true;               // this is rank 0
  std::filesystem::path folder{};  // empty: that of temporary files
  bool reads = true;               // false: all but file and host memory (dry runs, rehearsals)
  std::optional<std::int64_t> host_limit{};
  std::function<void()> beat{};  // told after each piece
};

class WeightsFile {
 public:
  // The states must outlive it.
  WeightsFile(std::vector<const ModelState*> states, WeightsFileOptions options);

  // Writes the weights as they are. A collective with rank0.
  void write();
  // Gives the weights the file's numbers. A collective with rank0. REQUIRES: write() returned.
  void load();
  std::int64_t bytes() const { return bytes_; }            // bytes that this rank read
  std::int64_t host_bytes() const { return host_bytes_; }  // the most that it held in host memory

 private:
  // The file has weights, and the piece is bytes of their codes.
  bool quantizes(const Piece& piece) const {
    return piece.quantized.parameters != nullptr && options_.form == WeightsFileForm::kPlain;
  }
  // Bytes of the piece's tensor in the file, and of one of its numbers.
  std::int64_t size_of(const Piece&) const;
  std::int64_t width_of(const Piece&) const;
  std::int64_t place(const Piece&);
  void write_weights(const Piece&);
  void read_weights(const Piece&);
  void by_pieces(const Piece&, const std::function<void(at::Tensor part, std::int64_t place)>& move);
  at::Tensor host_room(const at::Tensor& like);
  void read_whole();
  void fill_piece(const Piece&);
  void beat() const {
    if (options_.beat) options_.beat();
  }

  std::vector<const ModelState*> states_;
  WeightsFileOptions options_;
  std::optional<ScratchFile> file_;
  std::map<std::string, std::int64_t> begins_;  // bytes, of each tensor in the file
  std::int64_t end_ = 0;                        // end of the file
  at::Tensor whole_;                            // rank 0: its bytes
  at::Tensor staged_;
  std::pair<std::string, at::Tensor> quantized_;  // rank 0: the last tensor's name and bytes
  std::int64_t bytes_ = 0, host_bytes_ = 0;
};

}  // namespace sweep::parallel
