// ResidualModel: by which factor measured rates differ from predicted ones, learned from the trials so far.
// It is a Gaussian process over log(measured / predicted): one unknown factor common to all, a part for each
// axis, and a part for their combination. One number is fitted: how far predictions are off within a group
// (its prior: a factor of 1.5). Likeness is how alike the candidates of a group are, kept for those that others are
// compared with again and again: the ones that were tried.
#pragma once
#include <map>
#include <span>
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

struct Observation {
  std::size_t candidate = 0;
  double residual = 0;  // log(measured / predicted)
};
struct Estimate {
  double mean = 0, deviation = 0;
};

class ResidualModel {
 public:
  ResidualModel(Likeness&, std::vector<Observation>);
  std::vector<Estimate> at(std::span<const std::size_t> candidates) const;

 private:
  double covariance(std::size_t candidate, std::size_t observation) const;
  // The logarithm of how likely the observations are, with this spread.
  double factorize(double spread);

  std::vector<Observation> seen_;
  std::vector<const Likeness::Column*> columns_;  // columns of the observed trials
  double self_ = 0, spread_ = 0;
  std::vector<double> lower_, weights_;  // Cholesky factor by rows; covariance^-1 x residuals
};

}  // namespace sweep::search
