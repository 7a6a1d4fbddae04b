// AdamW with moments in eight bits: each block of 256 numbers shares the largest magnitude of its means, and that of
// its squares, and a moment is the nearest of 256 values between. One CUDA thread for each number of a block.
#pragma once
#include "bench_kernels/kernels/device/scalar.h"

namespace sweep::device {

// The largest over the block's threads, for all of them. room: one element for each warp.
template <class A>
__device__ inline A block_most(A x, A* room) {
  x = warp_most(x);
  if (threadIdx.x % kWarp == 0) room[threadIdx.x / kWarp] = x;
  __syncthreads();
  A most = room[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) most = room[warp] > most ? room[warp] : most;
  __syncthreads();  // before the room is used again
  return most;
}

// The place of the value next to x in an ascending map of 256.
template <class A>
__device__ inline unsigned char nearest_code(const A* map, A x) {
  int at = 0;
  for (int step = kEightBitValues / 2; step > 0; step /= 2)
    if (map[at + step] <= x) at += step;
  if (at + 1 < kEightBitValues && x - map[at] > map[at + 1] - x) ++at;
  return static_cast<unsigned char>(at);
}

// A moment of the number i: what a block's codes and scale say, or the number itself where there are no codes.
template <class A>
__device__ inline A moment_of(const float* numbers, const unsigned char* codes, const A* map, Index i) {
  if (codes == nullptr) return numbers[i];
  return map[codes[i]] * numbers[i / kEightBitBlock];
}

// room: kWarp elements and both maps.
// REQUIRES: kEightBitBlock threads.
template <class T>
__device__ inline void adamw_eight_bit(const EightBitArgs& args, Wide<T>* room) {
  using A = Wide<T>;
  A *mean_map = room + kWarp, *square_map = mean_map + kEightBitValues;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * kEightBitValues; i += static_cast<int>(blockDim.x))
    mean_map[i] = static_cast<const float*>(args.maps)[i];
  __syncthreads();
  float *mean = static_cast<float*>(args.mean), *square = static_cast<float*>(args.square);
  unsigned char *mean_codes = static_cast<unsigned char*>(args.mean_codes),
                *square_codes = static_cast<unsigned char*>(args.square_codes);
  const A beta1 = static_cast<A>(args.beta1), beta2 = static_cast<A>(args.beta2);
  const Index blocks = (args.n + kEightBitBlock - 1) / kEightBitBlock;
  for (Index block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Index i = block * kEightBitBlock + threadIdx.x;
    const bool here = i < args.n;
    A m = 0, v = 0;
    if (here) {
      const A g = widen(static_cast<const T*>(args.grad)[i]);
      m = beta1 * moment_of(mean, mean_codes, mean_map, i) + (1 - beta1) * g;
      v = beta2 * moment_of(square, square_codes, square_map, i) + (1 - beta2) * g * g;
      T& stored = static_cast<T*>(args.parameter)[i];
      const A root = static_cast<A>(sqrt(v)) * static_cast<A>(args.root) + static_cast<A>(args.eps);
      narrow(widen(stored) * static_cast<A>(args.decay) - static_cast<A>(args.step_size) * m / root, stored);
    }
    if (mean_codes == nullptr) {
      if (here) mean[i] = static_cast<float>(m), square[i] = static_cast<float>(v);
      continue;
    }
    const A most_m = block_most(m < 0 ? -m : m, room), most_v = block_most(v, room);
    if (here) {
      mean_codes[i] = nearest_code(mean_map, most_m > 0 ? m / most_m : A(0));
      square_codes[i] = nearest_code(square_map, most_v > 0 ? v / most_v : A(0));
    }
    if (threadIdx.x == 0)
      mean[block] = static_cast<float>(most_m), square[block] = static_cast<float>(most_v);
  }
}

}  // namespace sweep::device
