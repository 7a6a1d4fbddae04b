// CUDA graphs: what a stream's capture recorded, launched again as one piece of work after another.
#include <algorithm>
#include <atomic>
#include <utility>

#include "worker/phantom/counters.h"
#include "worker/phantom/runtime.h"

using namespace sweep::phantom;

namespace {

struct GraphState {  // behind cudaGraph_t and cudaGraphExec_t
  std::shared_ptr<Capture> capture;
};

template <class Handle>
GraphState& state_of(Handle handle) {
  return *reinterpret_cast<GraphState*>(handle);
}

std::atomic<std::uint64_t> captures{0};

// Work that takes part in no meeting is one piece: a graph's kernels have no launch costs of their own.
void launch_graph(const Capture& capture, Stream& stream) {
  Clocks& clocks = Clocks::get();
  Ns first_cost = description().profile.graph_host;
  Work piece;
  std::vector<std::function<void()>> acts;
  const auto flush = [&] {
    piece.act = [moved = std::move(acts)] {
      for (const auto& act : moved) act();
    };
    clocks.add(stream, std::move(piece), std::exchange(first_cost, 0));
    piece = {};
    acts.clear();
  };
  for (const Work& work : capture.work) {
    piece.lasts += work.lasts;
    if (work.act) acts.push_back(work.act);
    if (!work.meeting && !work.caller) continue;
    flush();
    if (work.meeting) piece.meeting = work.meeting->again();
    piece.caller = work.caller;
    flush();
  }
  flush();
}

}  // namespace

PHANTOM_API cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  if (const auto error = Runtime::get().begin()) return error;
  Stream& stream = stream_of(handle);
  if (stream.capture) return result(cudaErrorStreamCaptureUnsupported);
  stream.capture = std::make_shared<Capture>();
  stream.capture->id = ++captures;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  if (const auto error = Runtime::get().begin()) return error;
  Stream& stream = stream_of(handle);
  if (!stream.capture) return result(cudaErrorStreamCaptureInvalidated);
  auto capture = std::move(stream.capture);
  Clocks::get().leave(capture);
  *graph = reinterpret_cast<cudaGraph_t>(new GraphState{std::move(capture)});
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = Runtime::get().visible() > 0 && stream_of(stream).capture ? cudaStreamCaptureStatusActive
                                                                      : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                 unsigned long long* id, cudaGraph_t* graph,
                                                 const cudaGraphNode_t** nodes,
                                                 const cudaGraphEdgeData** edges, std::size_t* count) {
  cudaStreamIsCapturing(stream, status);
  if (id != nullptr) *id = stream_of(stream).capture ? stream_of(stream).capture->id : 0;
  if (graph != nullptr) *graph = nullptr;
  if (nodes != nullptr) *nodes = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(current, *mode);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                      unsigned long long) {
  if (const auto error = Runtime::get().begin()) return error;
  *exec = reinterpret_cast<cudaGraphExec_t>(new GraphState{state_of(graph).capture});
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (const auto error = Runtime::get().begin()) return error;
  ++counters().graph_launches;
  launch_graph(*state_of(exec).capture, stream_of(stream));
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete &state_of(graph);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete &state_of(exec);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (nodes == nullptr)
    *count = state_of(graph).capture->work.size();
  else
    std::fill_n(nodes, *count, nullptr);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
                                                     std::size_t* count) {
  refuse("cudaGraphNodeGetDependencies");
  *count = 0;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t, const char*, unsigned) {
  refuse("cudaGraphDebugDotPrint");
  return result(cudaErrorNotSupported);
}
