#include "orchestrator/cli/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace sweep::cli {

int StandardOutput::sync() {
  for (const char* at = pbase(); error_ == 0 && at < pptr();) {
    const ssize_t n = ::write(fd_, at, static_cast<std::size_t>(pptr() - at));
    if (n >= 0)
      at += n;
    else if (errno != EINTR)
      error_ = errno;
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return 0;
}

StandardOutput::int_type StandardOutput::overflow(int_type c) {
  sync();
  if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
  return traits_type::not_eof(c);
}

void fill_closed_descriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0)
      ::open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);  // gets this very number
}

}  // namespace sweep::cli
