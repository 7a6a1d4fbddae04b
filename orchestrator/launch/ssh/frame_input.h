// FrameInput: frames from what a host sends, after what its start files may have printed.
#pragma once
#include <optional>
#include <string_view>

#include "orchestrator/launch/ssh/banner_skipper.h"
#include "schema/frame.h"

namespace sweep::launch {

class FrameInput {
 public:
  void feed(std::string_view bytes) { reader_.feed(banner_.take(bytes)); }
  // nullopt: the next one is not complete. Error: the bytes are no frame.
  Expected<std::optional<Frame>> next() { return reader_.next(); }

 private:
  BannerSkipper banner_;
  FrameReader reader_{kLongestFrame};
};

}  // namespace sweep::launch
