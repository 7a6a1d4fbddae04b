// check: loss and gradient norms of a checkpoint on given tokens, for comparison with other implementations:
// the training step itself, on one rank or as forked ranks of this machine.
#pragma once
#include <filesystem>
#include <string>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::step {

// checkpoint_dir: a Hugging Face folder (config.json, safetensors). tokens_json: a list of equally long token
// lists; inputs are all but the last token, labels all but the first. layout: a trial whose degrees,
// strategies and precision are taken; model, batch and lengths are the files'. Computed on the CPU. Returns one
// line of JSON:
// {"loss": mean cross-entropy, "grad_norms": {tensor name as in the safetensors file: Euclidean norm}}, of
// the whole tensors whatever the layout. REQUIRES for more than one rank: see comm/forked_ranks.h.
Expected<std::string> check(const std::filesystem::path& checkpoint_dir,
                            const std::filesystem::path& tokens_json, const Trial& layout = {});

}  // namespace sweep::step
