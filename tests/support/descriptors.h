// SWEEP_WITHOUT_DESCRIPTORS: whether a test may take every file descriptor away. Not under UBSan, which looks
// at the memory of an object through a pipe of its own and takes a refusal for a bad object.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

namespace sweep::testing {

// While it lives, this process can open no further descriptor.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace sweep::testing

#define SWEEP_WITHOUT_DESCRIPTORS 1
#ifdef __has_feature
#if __has_feature(undefined_behavior_sanitizer)
#undef SWEEP_WITHOUT_DESCRIPTORS
#define SWEEP_WITHOUT_DESCRIPTORS 0
#endif
#endif
