// Declares what LibTorch's headers name of Gloo's device; LibTorch holds the code.
#pragma once
namespace gloo::transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = default;
};
}  // namespace gloo::transport
