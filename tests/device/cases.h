// Shared by every comparison of the fused kernels on the CPU: arrays whose end the sanitizers know, tolerances, cases.
#pragma once
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/device/host_kernels.h"

namespace device_test {

using namespace sweep::device;
using host_kernels::Shape;

inline int failures = 0;

// The error that a stored type allows, relative to the largest value.
template <class T>
double tolerance() {
  return std::is_same_v<T, double>  ? 1e-13
         : std::is_same_v<T, float> ? 2e-6
         : std::is_same_v<T, Fp16>  ? 2e-3
                                    : 1.6e-2;
}

// n elements of T on the heap, exactly, at an offset of `shift` elements from 16 bytes; the sanitizer knows the end.
template <class T>
class Array {
 public:
  Array(Index n, int shift, unsigned seed, double scale = 1)
      : values_(new (std::align_val_t(16)) T[static_cast<std::size_t>(n + shift)]), n_(n), shift_(shift) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (Index i = 0; i < n; ++i) narrow(static_cast<Wide<T>>(scale * normal(random)), at()[i]);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { ::operator delete[](values_, std::align_val_t(16)); }
  T* at() const { return values_ + shift_; }
  double operator[](Index i) const { return widen(at()[i]); }
  std::vector<double> wide() const {
    std::vector<double> out;
    for (Index i = 0; i < n_; ++i) out.push_back((*this)[i]);
    return out;
  }

 private:
  T* values_;
  Index n_;
  int shift_;
};

template <class A>
void expect_near(const std::string& what, const A& got, const std::vector<double>& want, double allowed) {
  double worst = 0, largest = 1;
  Index at = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double error = std::fabs(got[static_cast<Index>(i)] - want[i]);
    largest = std::max(largest, std::fabs(want[i]));
    if (!(error <= worst)) worst = error, at = static_cast<Index>(i);
  }
  if (worst <= allowed * largest) return;
  ++failures;
  std::printf("%s: element %lld is %g, expected %g (error %.2e, allowed %.2e)\n", what.c_str(), at, got[at],
              want[static_cast<std::size_t>(at)], worst, allowed * largest);
}

// A case varies rows and columns, the block, whether 16 bytes move at once, and by how much arrays are misaligned.
struct Case {
  Index rows, n;
  unsigned blocks, threads;
  bool packed;
  int shift;
};
template <class T>
std::string said(const char* kernel, const Case& c) {
  const char* type = std::is_same_v<T, double>  ? "fp64"
                     : std::is_same_v<T, float> ? "fp32"
                     : std::is_same_v<T, Fp16>  ? "fp16"
                                                : "bf16";
  return std::string(kernel) + " " + type + " " + std::to_string(c.rows) + "x" + std::to_string(c.n) +
         " threads " + std::to_string(c.threads) + (c.packed ? " packed" : " single");
}

struct Read {
  const std::vector<double>& values;
  double operator[](Index i) const { return values[static_cast<std::size_t>(i)]; }
};

}  // namespace device_test
