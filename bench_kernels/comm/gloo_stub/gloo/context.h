// Declares what LibTorch's headers call of Gloo's context; LibTorch holds the code.
#pragma once
#include <chrono>
namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};
}  // namespace gloo
