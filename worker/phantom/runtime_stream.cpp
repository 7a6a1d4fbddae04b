// The CUDA runtime's streams and events, on the modelled clocks.
#include "worker/phantom/counters.h"
#include "worker/phantom/runtime.h"

using namespace sweep::phantom;

namespace {

EventState& event_of(cudaEvent_t event) {
  return *reinterpret_cast<EventState*>(event);
}

cudaError_t synced() {  // a host synchronisation took place
  ++counters().host_syncs;
  return Runtime::get().begin();
}

}  // namespace

PHANTOM_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  if (const auto error = Runtime::get().begin()) return error;
  *stream = reinterpret_cast<cudaStream_t>(Clocks::get().make(current_device(), priority));
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

PHANTOM_API cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}

// Its work goes on; the object stays, so that a late user finds it.
PHANTOM_API cudaError_t cudaStreamDestroy(cudaStream_t) {
  return Runtime::get().begin();
}

PHANTOM_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream_of(stream).priority;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* flags) {
  *flags = cudaStreamNonBlocking;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const auto error = Runtime::get().begin()) return error;
  return Clocks::get().query(stream_of(stream)) ? cudaSuccess : result(cudaErrorNotReady);
}

PHANTOM_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const auto error = Runtime::get().begin()) return error;
  if (stream_of(stream).capture) return result(cudaErrorStreamCaptureUnsupported);
  Clocks::get().synchronize(stream_of(stream));
  return synced();
}

PHANTOM_API cudaError_t cudaDeviceSynchronize() {
  if (const auto error = Runtime::get().begin()) return error;
  Clocks::get().synchronize_device(current_device());
  return synced();
}

PHANTOM_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const auto error = Runtime::get().begin()) return error;
  if (!event_of(event).mark) return cudaSuccess;  // never recorded
  Work work;
  work.wait = event_of(event).mark;
  Clocks::get().add(stream_of(stream), std::move(work), description().profile.event_host);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (const auto error = Runtime::get().begin()) return error;
  Work work;
  work.caller = [=] { function(data); };
  Clocks::get().add(stream_of(stream), std::move(work), description().profile.launch_host);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                                              unsigned) {
  if (const auto error = Runtime::get().begin()) return error;
  Work work;
  work.caller = [=] { function(stream, cudaSuccess, data); };
  Clocks::get().add(stream_of(stream), std::move(work), description().profile.launch_host);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (const auto error = Runtime::get().begin()) return error;
  *event = reinterpret_cast<cudaEvent_t>(new EventState);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}

PHANTOM_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  if (const auto error = Runtime::get().begin()) return error;
  event_of(event).mark = std::make_shared<Mark>();
  Clocks::get().record(stream_of(stream), event_of(event).mark, description().profile.event_host);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

PHANTOM_API cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const auto error = Runtime::get().begin()) return error;
  const MarkPtr mark = event_of(event).mark;
  if (!mark) return cudaSuccess;
  if (!mark->captured.expired()) return result(cudaErrorStreamCaptureUnsupported);
  return Clocks::get().query(mark) ? cudaSuccess : result(cudaErrorNotReady);
}

PHANTOM_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const auto error = Runtime::get().begin()) return error;
  if (const MarkPtr mark = event_of(event).mark) Clocks::get().wait_for(mark);
  return synced();
}

PHANTOM_API cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  if (const auto error = Runtime::get().begin()) return error;
  const MarkPtr begin = event_of(from).mark, end = event_of(to).mark;
  if (!begin || !end) return result(cudaErrorInvalidResourceHandle);
  Ns elapsed = 0;
  if (!Clocks::get().times(begin, end, elapsed)) return result(cudaErrorNotReady);
  *ms = static_cast<float>(static_cast<double>(elapsed) / 1e6);
  return cudaSuccess;
}
