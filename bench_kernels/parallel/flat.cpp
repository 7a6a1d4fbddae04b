#include "bench_kernels/parallel/flat.h"

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>

#include <utility>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::parallel {

void release(const at::Tensor& flat) {
  c10::StorageImpl* storage = flat.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(nullptr, flat.device()));
  storage->set_nbytes(0);
}

void allocate(const at::Tensor& flat) {
  c10::StorageImpl* storage = flat.storage().unsafeGetStorageImpl();
  const std::size_t bytes = static_cast<std::size_t>(flat.numel()) * flat.element_size();
  storage->set_data_ptr_noswap(c10::GetAllocator(flat.device().type())->allocate(bytes));
  storage->set_nbytes(bytes);
}

at::Tensor empty_outside(std::int64_t elements, at::Device device, at::ScalarType type) {
  return memory::empty_on_host({elements}, at::TensorOptions().dtype(type).device(device));
}

void allocate_outside(const at::Tensor& flat, at::Device device) {
  const at::Tensor room = empty_outside(flat.numel(), device, flat.scalar_type());
  c10::StorageImpl* storage = flat.storage().unsafeGetStorageImpl();
  c10::StorageImpl* taken = room.storage().unsafeGetStorageImpl();
  storage->set_nbytes(taken->nbytes());
  storage->set_data_ptr_noswap(std::move(taken->_mutable_data_ptr_no_checks()));
}

at::Tensor share(const at::Tensor& flat, int rank, int size) {
  const std::int64_t n = flat.numel() / size;
  return size == 1 ? flat : flat.narrow(0, rank * n, n);
}

}  // namespace sweep::parallel
