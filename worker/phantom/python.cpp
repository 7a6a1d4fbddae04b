#include "worker/phantom/python.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "worker/phantom/runtime.h"

using namespace sweep::phantom;

namespace sweep::phantom {
namespace {

constexpr int kFileInput = 257;  // Py_file_input
// The wait for peers, which may compile for minutes. It is waited out once; after that a program goes on with the
// values that were there before.
constexpr int kLongestWaitMs = 600 * 1000;

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

// Python's stable interface, as far as it is needed; all null in a process without Python.
struct Python {
  int (*initialized)() = find<int()>("Py_IsInitialized");
  int (*may_run)() = find<int()>("PyGILState_Check");
  void* (*modules)() = find<void*()>("PyImport_GetModuleDict");
  void* (*item)(void*, const char*) = find<void*(void*, const char*)>("PyDict_GetItemString");
  void* (*compile)(const char*, const char*,
                   int) = find<void*(const char*, const char*, int)>("Py_CompileString");
  void* (*execute)(const char*, void*) = find<void*(const char*, void*)>("PyImport_ExecCodeModule");
  void (*print_error)() = find<void()>("PyErr_Print");

  bool complete() const {
    return initialized && may_run && modules && item && compile && execute && print_error;
  }
};

}  // namespace

void teach_python() {
  static std::atomic<bool> over = false;
  if (over) return;
  static const Python python;
  if (!python.complete()) {
    over = true;
    return;
  }
  if (!python.initialized() || !python.may_run()) return;
  if (python.item(python.modules(), "torch.library") == nullptr || over.exchange(true)) return;
  const std::string text(small_integers());
  void* code = python.compile(text.c_str(), "<phantom GPUs: small_integers.py>", kFileInput);
  if (code != nullptr && python.execute("sweep_phantom_small_integers", code) != nullptr) return;
  std::fputs("phantom GPUs: small whole numbers are not computed, because:\n", stderr);
  python.print_error();
}

}  // namespace sweep::phantom

// 1: what the stream was given before has been carried out. 0: it is captured, or peers did not come.
// No clock moves.
PHANTOM_API int sweep_phantom_settle(cudaStream_t handle) {
  static std::atomic<int> patience_ms = kLongestWaitMs;
  Stream& stream = stream_of(handle);
  if (stream.capture) return 0;
  const auto mark = std::make_shared<Mark>();
  Clocks::get().record(stream, mark, 0);
  if (Clocks::get().wait_until([&] { return mark->done; }, patience_ms)) return 1;
  patience_ms = 0;
  return 0;
}
