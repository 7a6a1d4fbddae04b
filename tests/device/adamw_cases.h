// AdamW of a list of tensors in one launch beside double arithmetic: parameters of the stored type and masters, each
// with gradients of the stored type and of fp32, with copies and without.
#pragma once
#include <memory>

#include "tests/device/cases.h"

namespace device_test {

// P: type of parameters and moments; G: of gradients.
template <class T, class P, class G>
struct AdamwList {
  struct Tensor {
    Array<P> parameter, mean, square;
    Array<G> grad;
    Array<T> copy;
    Tensor(Index n, int shift, unsigned seed)
        : parameter(n, shift, seed),
          mean(n, shift, seed + 1, 0.1),
          square(n, shift, seed + 2, 0),
          grad(n, shift, seed + 3),
          copy(n, shift, seed + 4) {
      for (Index i = 0; i < n; ++i)
        narrow(static_cast<Wide<P>>(0.01 * static_cast<double>(i % 7)), square.at()[i]);
    }
  };
  std::vector<std::unique_ptr<Tensor>> tensors;
  AdamwArgs args{};

  AdamwList(const std::vector<Index>& sizes, Index chunk, int shift, bool copies) {
    args.chunk = chunk, args.wide_grads = std::is_same_v<T, G> ? 0 : 1;
    args.beta1 = 0.9, args.beta2 = 0.99, args.coefficient = 0.5;
    args.decay = 0.75, args.step_size = 0.25, args.root = 2, args.eps = 0.125;
    for (const Index n : sizes) {
      const auto seed = static_cast<unsigned>(10 * tensors.size() + 1);
      const auto& t = *tensors.emplace_back(std::make_unique<Tensor>(n, shift, seed));
      args.of[args.tensors++] = {
          t.parameter.at(), t.grad.at(), t.mean.at(), t.square.at(), copies ? t.copy.at() : nullptr, n,
          args.chunks};
      args.chunks += (n + chunk - 1) / chunk;
    }
  }
};

template <class T, class P, class G>
void adamw_of(const Case& c, bool copies) {
  constexpr Index kPack = 16 / sizeof(T);
  const Index chunk = 3 * static_cast<Index>(c.threads) * kPack;
  const AdamwList<T, P, G> list({2 * chunk + 5, 3, 0, chunk, kPack}, chunk, c.shift, copies);
  std::vector<std::vector<double>> parameters, means, squares, copied;
  for (const auto& t : list.tensors) {
    parameters.push_back(t->parameter.wide()), means.push_back(t->mean.wide());
    squares.push_back(t->square.wide()), copied.push_back(t->copy.wide());
    for (std::size_t i = 0; i < parameters.back().size(); ++i) {
      double &p = parameters.back()[i], &m = means.back()[i], &v = squares.back()[i];
      const double g = 0.5 * t->grad[static_cast<Index>(i)];
      m = 0.9 * m + 0.1 * g, v = 0.99 * v + 0.01 * g * g;
      p = 0.75 * p - 0.25 * m / (2 * std::sqrt(v) + 0.125);
      if (copies) copied.back()[i] = p;
    }
  }
  const bool master = !std::is_same_v<T, P>;
  const char* name = master ? "adamw_master" : "adamw";
  host_kernels::run<T>(name, c.packed, {c.blocks, c.threads, 0}, &list.args);
  const std::string what = said<T>(name, c) + (list.args.wide_grads != 0 ? " fp32 gradients" : "");
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    const auto& t = *list.tensors[i];
    expect_near(what, t.parameter, parameters[i], tolerance<P>());
    expect_near(what + " mean", t.mean, means[i], tolerance<P>());
    expect_near(what + " square", t.square, squares[i], tolerance<P>());
    expect_near(what + " copy", t.copy, copied[i], tolerance<T>());
  }
}

template <class T>
void adamws() {
  for (const Case& c :
       {Case{1, 0, 3, 512, true, 0}, Case{1, 0, 1, 64, true, 0}, Case{1, 0, 2, 64, false, 1}}) {
    adamw_of<T, T, T>(c, false);
    if constexpr (sizeof(T) == 2) {
      adamw_of<T, T, float>(c, false);
      adamw_of<T, float, T>(c, true);
      adamw_of<T, float, T>(c, false);
      adamw_of<T, float, float>(c, true);
    }
  }
}

}  // namespace device_test
