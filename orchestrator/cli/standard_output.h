// StandardOutput: what commands write their data to. It remembers the first error of the descriptor and takes
// the rest without writing it, so that a command runs to its end and one place, run(), tells the error.
#pragma once
#include <array>
#include <ostream>
#include <streambuf>

namespace sweep::cli {

class StandardOutput : public std::streambuf {
 public:
  explicit StandardOutput(int fd) : fd_(fd) { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

  // errno of the first write that failed; 0: none did. EPIPE: the reader has seen enough, which is no error.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  int fd_;
  int error_ = 0;
  std::array<char, 1 << 16> buffer_;
};

// Opens /dev/null for each of the descriptors 0 to 2 that is closed, so that no file of ours gets its number.
// Writing to a standard output that was closed still fails.
void fill_closed_descriptors();

}  // namespace sweep::cli
