// What the writers share: flags one per line, and the sentences about settings that no trainer has.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "schema/trial.h"

namespace sweep::interop {

// Flags, one per line with continuation, so that a diff of two configurations reads well.
class Flags {
 public:
  explicit Flags(std::string head) : out_(std::move(head)) {}
  template <class T>
  Flags& add(std::string_view flag, const T& value) {
    out_ += fmt::format(" \\\n  {} {}", flag, value);
    return *this;
  }
  Flags& add(std::string_view flag) {
    out_ += fmt::format(" \\\n  {}", flag);
    return *this;
  }
  std::string text() const { return out_ + "\n"; }

 private:
  std::string out_;
};

// TrainerConfig::unsupported_settings.
using Gaps = std::vector<std::string>;

// Each node runs this command; the job sets $MASTER_ADDR to the name of its first node.
std::string torchrun(const Trial&);
// Numbers of the gradients' type in a bucket: for trainers that count elements, not bytes.
i64 bucket_elements(const Trial&);
// Adds the settings of the trial that none of the trainers has.
void note_common_gaps(const Trial&, Gaps&);
// The token tables have more rows than the vocabulary has tokens.
bool vocabulary_padded(const Trial&);
// False, and a sentence, when the trial does not give the dimensions of its model.
bool dimensions_known(const Trial&, Gaps&);

}  // namespace sweep::interop
