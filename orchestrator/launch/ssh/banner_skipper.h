// BannerSkipper: passes on what comes after the mark that our shell line prints first. Start files on the
// host (.bashrc) may print text before it. That text is kept for error messages and is part of no answer.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "schema/frame.h"

namespace sweep::launch {

class BannerSkipper {
 public:
  static constexpr std::string_view kMark = "sweep: from here on\n";

  // Valid until the next call.
  std::string_view take(std::string_view bytes) {
    if (past_) return bytes;
    said_ += bytes;
    const auto at = said_.find(kMark);
    if (at == std::string::npos) {
      if (said_.size() > kKept) said_.erase(0, said_.size() - kKept);
      return {};
    }
    past_ = true;
    after_ = said_.substr(at + kMark.size());
    said_.resize(at);
    return after_;
  }
  bool past() const { return past_; }
  const std::string& said() const { return said_; }  // the last of what came before

 private:
  static constexpr std::size_t kKept = 4096;
  bool past_ = false;
  std::string said_, after_;
};

// Frames from what a host sends, after what its start files may have printed.
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
