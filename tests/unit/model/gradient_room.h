// Room for the gradients of a model whose gradients nobody owns.
#pragma once
#include <ATen/ATen.h>

#include "bench_kernels/model/parameters.h"

namespace sweep::model {

// Gives every bucket that is trained a gradient buffer of zeros.
inline void make_gradient_room(Parameters& parameters) {
  for (auto& bucket : parameters.buckets())
    if (!bucket.frozen) bucket.grads = at::zeros({bucket.elements}, bucket.values.options());
}

}  // namespace sweep::model
