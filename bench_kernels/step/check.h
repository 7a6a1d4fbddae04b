// check: loss and gradient norms of a checkpoint on given tokens, for comparison with other implementations.
#pragma once
#include <filesystem>
#include <string>

#include "schema/expected.h"

namespace sweep::step {

// checkpoint_dir: a Hugging Face folder (config.json, safetensors). tokens_json: a list of equally long token
// lists; inputs are all but the last token, labels all but the first. Computed in fp32 on the CPU. Returns
// one line of JSON:
// {"loss": mean cross-entropy, "grad_norms": {tensor name as in the safetensors file: Euclidean norm}}.
Expected<std::string> check(const std::filesystem::path& checkpoint_dir,
                            const std::filesystem::path& tokens_json);

}  // namespace sweep::step
