// Names: what people call an axis or a metric on a page: "tokens/s per GPU" for tokens_per_s_gpu. Commands,
// files and SQL keep the identifiers.
#pragma once
#include <span>
#include <string>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"

namespace sweep::answers {

class Names {
 public:
  // If every row ran on CPU ranks, "GPU" reads "rank".
  explicit Names(std::span<const ResultRow> rows);
  std::string of(std::string_view key) const;
  std::string of(const Field& field) const { return of(field.name()); }
  // The name with its unit, where the name does not spell it: "step time [ms]".
  std::string with_unit(const Field&, const Scale&) const;

 private:
  bool on_cpu_;
};

// Long labels of one axis, made short without hiding where they differ: what all of them begin or end with is
// left out. Labels stay whole where that would make two of them equal.
std::vector<std::string> shortened(std::vector<std::string> labels, std::size_t columns);

}  // namespace sweep::answers
