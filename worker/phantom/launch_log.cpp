#include "worker/phantom/launch_log.h"

#include <cstdio>
#include <cstdlib>

#include "worker/phantom/counters.h"

namespace sweep::phantom {
namespace {

// The file of the variable, %r and %p replaced (as the counters' file); null: none is wanted. It is never closed: a
// line is there when its launch returns.
std::FILE* opened() {
  const char* pattern = std::getenv("SWEEP_PHANTOM_LAUNCHES");
  if (pattern == nullptr) return nullptr;
  std::FILE* file = std::fopen(file_of_process(pattern).c_str(), "ae");
  if (file != nullptr) std::setvbuf(file, nullptr, _IOLBF, 1 << 16);
  return file;
}

std::FILE* file() {
  static std::FILE* const open = opened();
  return open;
}

}  // namespace

bool logs_launches() {
  return file() != nullptr;
}

void log_launch(const char* name, double threads, double bytes) {
  if (file() != nullptr) std::fprintf(file(), "%.0f\t%.0f\t%s\n", threads, bytes, name);
}

void log_block(const void* at, double bytes) {
  if (file() != nullptr) std::fprintf(file(), "0\t%.0f\t%s %p\n", bytes, bytes > 0 ? "malloc" : "free", at);
}

}  // namespace sweep::phantom
