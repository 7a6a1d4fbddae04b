// LineCutter: cuts bytes that come in pieces into lines. A line longer than the limit is passed over.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace sweep::command {

class LineCutter {
 public:
  // A line ends at '\n', and where it says so at '\r' too: a progress bar draws over itself that way.
  LineCutter(std::size_t longest, bool ends_at_return) : longest_(longest), ends_at_return_(ends_at_return) {}

  // Calls on_line(std::optional<std::string_view>) for each line that ends in these bytes; nullopt: it was
  // too long.
  template <class OnLine>
  void feed(std::string_view bytes, OnLine&& on_line) {
    while (!bytes.empty()) {
      const std::size_t end = end_in(bytes);
      const std::string_view piece = bytes.substr(0, end);
      if (!skipping_ && rest_.size() + piece.size() > longest_) drop();
      if (end == std::string_view::npos) {
        if (!skipping_) rest_ += piece;
        return;
      }
      if (rest_.empty() && !skipping_) {
        on_line(std::optional(piece));
      } else {
        if (!skipping_) rest_ += piece;
        finish(on_line);
      }
      bytes.remove_prefix(end + 1);
    }
  }
  // The line under way has no end.
  template <class OnLine>
  void finish(OnLine&& on_line) {
    if (skipping_)
      on_line(std::optional<std::string_view>());
    else if (!rest_.empty())
      on_line(std::optional(std::string_view(rest_)));
    rest_.clear();
    skipping_ = false;
  }
  // Drops the line under way, because bytes of it are missing.
  void drop() {
    skipping_ = true;
    rest_.clear();
  }

 private:
  // The first end of a line: a search for each kind would read what is left over and over.
  std::size_t end_in(std::string_view bytes) const {
    return ends_at_return_ ? bytes.find_first_of("\n\r") : bytes.find('\n');
  }

  std::size_t longest_;
  bool ends_at_return_, skipping_ = false;
  std::string rest_;
};

}  // namespace sweep::command
