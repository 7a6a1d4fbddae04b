// Flat buffers that come and go: storage given back and taken again while views of it stay, and buffers in
// host memory beside the device.
#pragma once
#include <ATen/core/Tensor.h>

namespace sweep::parallel {

// Gives the storage of a whole tensor back; the tensor and its views keep their shapes and must not be read.
// REQUIRES: no operation of another stream or group under way on it.
void release(const at::Tensor& flat);
// Takes storage again, with any content.
void allocate(const at::Tensor& flat);

// A flat tensor outside the device: host memory, pinned where there is a GPU. On CPU and meta tensors the
// counting allocator tags it as host memory.
at::Tensor empty_outside(std::int64_t elements, at::Device device, at::ScalarType);

// As allocate(), of a tensor that empty_outside() made for that device.
void allocate_outside(const at::Tensor& flat, at::Device device);

// The part of a flat tensor that belongs to the rank-th of `size` equal shares.
at::Tensor share(const at::Tensor& flat, int rank, int size);

}  // namespace sweep::parallel
