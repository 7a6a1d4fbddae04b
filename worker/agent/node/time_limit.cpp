#include "worker/agent/node/time_limit.h"

#include <algorithm>

namespace sweep::agent {

namespace {
constexpr double kToEnd = 1;       // seconds to take an attempt's ranks away and to say so
constexpr double kMostOfIt = 0.8;  // share of the limit
constexpr double kAtLeast =
    0.1;  // seconds of a prediction: its ratio to what was measured means nothing below
}  // namespace

double TimeLimit::estimate(const Attempt& attempt) const {
  const double predicted = attempt.predicted_s.value_or(0);
  const double pace = predicted_s_ > 0 ? std::max(1.0, took_s_ / predicted_s_) : 1;
  return std::min(std::max(predicted * pace, predicted + most_beyond_s_), attempt.deadlines.total_s);
}

bool TimeLimit::allows(const Attempt& attempt, double now_s) const {
  if (!limit_s_) return true;
  const double need = estimate(attempt) + kToEnd, left = *limit_s_ - (now_s - began_s_);
  return left >= std::min(need, kMostOfIt * *limit_s_);
}

void TimeLimit::ended(const Attempt& attempt, double took_s) {
  const double predicted = attempt.predicted_s.value_or(0);
  took_s_ += took_s;
  predicted_s_ += std::max(predicted, kAtLeast);
  most_beyond_s_ = std::max(most_beyond_s_, took_s - predicted);
}

}  // namespace sweep::agent
