// The encoder of an encoder-decoder model in a trial: how long its sequences are, and what it is not combined with.
#pragma once
#include <optional>
#include <string>

#include "schema/trial.h"

namespace sweep::shape {

// Tokens of each sequence that the encoder reads; 0: the model has none.
i64 encoder_length(const Trial&);

// Why the step does not run this encoder-decoder, or has no encoder for encoder_seq_len, as a sentence without its end;
// nullopt: it does.
std::optional<std::string> encoder_objection(const Trial&);

}  // namespace sweep::shape
