#include "worker/rank/uncaught.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

namespace sweep::rank {

std::atomic<UncaughtExceptions*> UncaughtExceptions::installed = nullptr;

UncaughtExceptions::UncaughtExceptions(std::function<int()> end) : end_(std::move(end)) {
  installed = this;
  std::set_terminate(&UncaughtExceptions::terminate);
}

UncaughtExceptions::~UncaughtExceptions() {
  std::set_terminate(&std::abort);
  installed = nullptr;
}

void UncaughtExceptions::claim() {
  if (!claimed_.exchange(true)) return;
  for (;;) ::pause();  // the other thread ends the process
}

void UncaughtExceptions::terminate() {
  UncaughtExceptions* const self = installed;
  const auto exception = std::current_exception();
  if (self == nullptr || !exception) std::abort();
  self->claim();
  int code = 1;
  try {
    std::rethrow_exception(exception);
  } catch (...) {
    code = self->end_();
  }
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace sweep::rank
