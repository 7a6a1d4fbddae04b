// Checkpoint: the weights of a Hugging Face folder: model.safetensors, or the shards its index names, and the
// adapters that peft saves beside them (adapter_model.safetensors). It owns
// where each tensor lies; files are untrusted: headers go through shape/safetensors_header.h, shapes must be
// the model's, and nothing is read outside the folder.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "base/expected.h"
#include "bench_kernels/model/parameters.h"
#include "bench_kernels/step/four_bit_file.h"

namespace sweep::step {

class Checkpoint {
 public:
  static Expected<Checkpoint> open(const std::filesystem::path& folder);

  // Maps a parameter's name to the name of its tensor in the file (files of a bare model lack the leading
  // "transformer." or "model."). A missing tensor, another shape, a type other than F32, BF16, F16 and bitsandbytes' NF4, or a
  // tensor that the model does not know is an error. REQUIRES: the parameters of the whole model.
  Expected<std::map<std::string, std::string>> names(const model::Parameters& whole) const;
  // Copies the values of a rank's share of a tensor, for InitialValues::Source. Throws std::runtime_error with a
  // sentence.
  void copy(const model::Part&, at::Tensor share) const;
  // Copies the codes of a whole tensor that the file has in 4 bits, for InitialValues::CodeSource; false: it has other bits.
  bool copy_codes(const model::Part&, const kernels::Nf4& whole) const;

 private:
  // prefix: what the names of this file's tensors begin with, which is left out.
  Expected<void> add_file(const std::filesystem::path& file, const std::string& prefix = {});
  Places::const_iterator find(const std::string& name) const;

  std::filesystem::path folder_;
  Places places_;
  FourBitFile four_bits_;
};

}  // namespace sweep::step
