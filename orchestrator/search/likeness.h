// Likeness: how alike the candidates of a group are, kept for those that others are compared with again and
// again: the ones that were tried.
#pragma once
#include <map>
#include <vector>

#include "orchestrator/search/features.h"

namespace sweep::search {

class Likeness {
 public:
  explicit Likeness(const Features& features) : features_(features) {}
  struct Column {
    std::vector<double> prior;  // the residual model's covariance, but for its scale
    std::vector<double> near;   // 1 for the same axes, less for each doubling or other word
  };
  // `prior` of a candidate with itself.
  double self() const { return features_.axes() > 0 ? 2 : 1; }
  // The likeness of every candidate with this one. The reference stays valid.
  const Column& with(std::size_t candidate);

 private:
  const Features& features_;
  std::map<std::size_t, Column> columns_;
};

}  // namespace sweep::search
