// cuDNN's graphs, as LibTorch's attention builds them: every graph has one plan, which takes the time of its
// products. Other calls are refused by name (constant_answers.cpp).
#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "worker/phantom/counters.h"
#include "worker/phantom/kernels.h"
#include "worker/phantom/launch_log.h"

using namespace sweep::phantom;

namespace {

struct Piece {
  cudnnBackendDescriptorType_t type{};
  std::map<int, std::vector<std::shared_ptr<Piece>>> parts;  // key: attribute
  std::map<int, std::vector<std::int64_t>> numbers;
};
using PiecePtr = std::shared_ptr<Piece>;

struct CudnnState {  // behind cudnnHandle_t
  cudaStream_t stream = nullptr;
};

PiecePtr& piece_of(cudnnBackendDescriptor_t descriptor) {
  return *reinterpret_cast<PiecePtr*>(descriptor);
}

// The dimensions of the tensor that is this attribute of an operation.
std::vector<std::int64_t> dimensions(const Piece& operation, int attribute) {
  const auto tensor = operation.parts.find(attribute);
  if (tensor == operation.parts.end() || tensor->second.empty()) return {};
  const auto found = tensor->second.front()->numbers.find(CUDNN_ATTR_TENSOR_DIMENSIONS);
  return found == tensor->second.front()->numbers.end() ? std::vector<std::int64_t>{} : found->second;
}

double volume(const std::vector<std::int64_t>& dims) {
  double out = dims.empty() ? 0 : 1;
  for (const auto size : dims) out *= static_cast<double>(size);
  return out;
}

// FLOPs of one operation: a product, or attention as one operation (two products forward, five backward).
double flops_of(const Piece& p) {
  if (p.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
    const auto a = dimensions(p, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    return a.empty()
               ? 0
               : 2 * volume(dimensions(p, CUDNN_ATTR_OPERATION_MATMUL_CDESC)) * static_cast<double>(a.back());
  }
  const bool forward = p.type == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR;
  if (!forward && p.type != CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR) return 0;
  const int q = forward ? CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC : CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC;
  const int k = forward ? CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC : CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC;
  const auto keys = dimensions(p, k);
  return keys.size() < 3 ? 0 : (forward ? 4 : 10) * volume(dimensions(p, q)) * static_cast<double>(keys[2]);
}

struct Sum {
  double flops = 0;
  bool masked = false;  // compares positions: a causal mask, half of the products
  std::set<const Piece*> seen;
  void add(const Piece& p) {
    if (!seen.insert(&p).second) return;
    flops += flops_of(p);
    const auto mode = p.numbers.find(CUDNN_ATTR_POINTWISE_MODE);
    masked |= mode != p.numbers.end() && mode->second.front() == CUDNN_POINTWISE_GEN_INDEX;
    for (const auto& [attribute, parts] : p.parts)
      for (const auto& part : parts) add(*part);
  }
};

Ns plan_time(const Piece& plan) {
  Sum sum;
  sum.add(plan);
  const auto& d = description();
  const auto peak = d.device.peak_flops.find("bf16");
  const double rate =
      (peak == d.device.peak_flops.end() ? 100e12 : peak->second) * d.profile.attention_efficiency;
  return std::max<Ns>(d.profile.kernel_floor, std::llround(sum.flops * (sum.masked ? 0.5 : 1) / rate * 1e9));
}

// Bytes of one element of an attribute, of those that the phantom reads; 0: others.
std::size_t element_size(cudnnBackendAttributeType_t type) {
  return type == CUDNN_TYPE_INT64 ? 8 : type == CUDNN_TYPE_INT32 || type == CUDNN_TYPE_POINTWISE_MODE ? 4 : 0;
}

}  // namespace

PHANTOM_API cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (Runtime::get().begin() != cudaSuccess) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cudnnHandle_t>(new CudnnState);
  return CUDNN_STATUS_SUCCESS;
}

PHANTOM_API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete reinterpret_cast<CudnnState*>(handle);
  return CUDNN_STATUS_SUCCESS;
}

PHANTOM_API cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<CudnnState*>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

PHANTOM_API cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  *stream = reinterpret_cast<CudnnState*>(handle)->stream;
  return CUDNN_STATUS_SUCCESS;
}

PHANTOM_API cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                       cudnnBackendDescriptor_t* out) {
  auto* piece = new PiecePtr(std::make_shared<Piece>());
  (*piece)->type = type;
  *out = piece;
  return CUDNN_STATUS_SUCCESS;
}

PHANTOM_API cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete &piece_of(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

PHANTOM_API cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t type, std::int64_t count,
                                                   const void* elements) {
  Piece& piece = *piece_of(descriptor);
  const std::size_t size = element_size(type);
  for (std::int64_t i = 0; i < count && elements != nullptr; ++i) {
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      const auto part = static_cast<const cudnnBackendDescriptor_t*>(elements)[i];
      if (part != nullptr) piece.parts[name].push_back(piece_of(part));
    } else if (size > 0) {
      std::int64_t number = 0;
      std::memcpy(&number, static_cast<const char*>(elements) + static_cast<std::size_t>(i) * size, size);
      piece.numbers[name].push_back(number);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

// One engine without settings, which needs no workspace: zeros, but for what leads from it to its graph.
PHANTOM_API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                                   cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t type, std::int64_t asked,
                                                   std::int64_t* count, void* elements) {
  const PiecePtr& piece = piece_of(descriptor);
  const bool leads = name == CUDNN_ATTR_ENGINEHEUR_RESULTS || name == CUDNN_ATTR_ENGINECFG_ENGINE;
  const std::size_t size = element_size(type);
  std::int64_t answered = 0;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    answered = leads ? 1 : 0;
    if (leads && asked > 0 && elements != nullptr)
      piece_of(*static_cast<cudnnBackendDescriptor_t*>(elements))->parts[name] = {piece};
  } else if (size > 0) {
    answered = 1;
    if (asked > 0 && elements != nullptr) std::memset(elements, 0, size);
  }
  if (count != nullptr) *count = answered;
  return CUDNN_STATUS_SUCCESS;
}

PHANTOM_API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                              cudnnBackendDescriptor_t) {
  if (Runtime::get().begin() != cudaSuccess) return CUDNN_STATUS_EXECUTION_FAILED;
  const auto* state = reinterpret_cast<CudnnState*>(handle);
  log_launch("cudnn attention", 0, 0);
  const auto error = run_kernel(stream_of(state->stream), {plan_time(*piece_of(plan))});
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
