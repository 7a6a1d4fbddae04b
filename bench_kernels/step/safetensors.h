// Reading weights from a Hugging Face folder: model.safetensors, or the shards its index names. Files are
// untrusted: headers go through shape/safetensors_header.h, shapes must be the model's, and nothing is read
// outside the folder.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "bench_kernels/model/parameters.h"
#include "schema/expected.h"

namespace sweep::step {

// Copies every parameter's values (F32, BF16 or F16) from the folder. Returns, by the parameter's name, the
// name the tensor has in the file (files of a bare model lack the leading "transformer." or "model."). A
// missing tensor, another shape, or a tensor the model does not know is an error.
Expected<std::map<std::string, std::string>> load_weights(const std::filesystem::path& folder,
                                                          model::Parameters&);

}  // namespace sweep::step
