// BannerSkipper: passes on what comes after the mark that our shell line prints first. Start files on the
// host (.bashrc) may print text before it. That text is kept for error messages and is part of no answer.
#pragma once
#include <string>
#include <string_view>

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

}  // namespace sweep::launch
