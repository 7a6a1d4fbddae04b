// Pass: the time of the kernels of a forward and its backward, and how many are launched.
#pragma once

namespace sweep::predict {

struct Pass {
  double forward = 0, backward = 0, forward_launches = 0, backward_launches = 0;

  Pass& operator+=(const Pass& other) {
    forward += other.forward, backward += other.backward;
    forward_launches += other.forward_launches, backward_launches += other.backward_launches;
    return *this;
  }
  Pass times(double n) const {
    return {n * forward, n * backward, n * forward_launches, n * backward_launches};
  }
  // The backward makes again what the forward made.
  void recompute() { backward += forward, backward_launches += forward_launches; }
};

}  // namespace sweep::predict
