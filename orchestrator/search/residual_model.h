// ResidualModel: by which factor measured rates differ from predicted ones, learned from the trials so far.
// It is a Gaussian process over log(measured / predicted): one unknown factor common to all, a part for each
// axis, and a part for their combination. One number is fitted: how far predictions are off within a group
// (its prior: a factor of 1.5).
#pragma once
#include <vector>

#include "orchestrator/search/features.h"

namespace sweep::search {

struct Observation {
  std::size_t candidate = 0;
  double residual = 0;  // log(measured / predicted)
};
struct Estimate {
  double mean = 0, deviation = 0;
};

class ResidualModel {
 public:
  ResidualModel(const Features&, std::vector<Observation>);
  Estimate at(std::size_t candidate) const;

 private:
  double covariance(std::size_t a, std::size_t b) const;
  // The logarithm of how likely the observations are, with this spread.
  double factorize(double spread);

  const Features& features_;
  std::vector<Observation> seen_;
  double spread_ = 0;
  std::vector<double> lower_, weights_;  // Cholesky factor by rows; covariance^-1 x residuals
};

}  // namespace sweep::search
