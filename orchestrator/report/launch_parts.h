// What the forms for other trainers share: flags one per line, and the sentences about what none of them takes.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "schema/trial.h"

namespace sweep::report {

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

using NotSaid = std::vector<std::string>;

// Each node runs one of these; what the job's first node is called only the job knows.
std::string torchrun(const Trial&);
// Numbers of the gradients' type in a bucket: for trainers that count elements, not bytes.
i64 bucket_elements(const Trial&);
// What no trainer takes as a flag and our step fixes.
void say_what_none_takes(const Trial&, NotSaid&);
// The token tables have more rows than the vocabulary has tokens.
bool vocabulary_padded(const Trial&);
// Where the dimensions of the model are not known: a sentence, and false.
bool dimensions_known(const Trial&, NotSaid&);

}  // namespace sweep::report
