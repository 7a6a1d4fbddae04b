#include "worker/phantom/pinned.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace sweep::phantom {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kTrue = std::size_t{1}
                              << 20;  // up to here memory is true: larger copies are not carried out
constexpr std::size_t kShown =
    // Size of the file that large pieces show; each is a mapping, and a process may have 65,530.
    std::size_t{16} << 20;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// The file that large pieces show; below 0: there is none.
int shown_file() {
  static const int file = [] {
    const int made = ::memfd_create("sweep-phantom-pinned", MFD_CLOEXEC);
    return made >= 0 && ::ftruncate(made, static_cast<off_t>(kShown)) == 0 ? made : -1;
  }();
  return file;
}

}  // namespace

void* make_pinned(std::size_t bytes) {
  if (bytes <= kTrue) return std::aligned_alloc(kPage, whole_pages(std::max<std::size_t>(bytes, 1)));
  const int file = shown_file();
  const std::size_t all = whole_pages(bytes);
  void* range = file < 0
                    ? MAP_FAILED
                    : ::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  for (std::size_t at = 0; at < all; at += kShown) {
    void* piece = ::mmap(static_cast<char*>(range) + at, std::min(kShown, all - at), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, file, 0);
    if (piece == MAP_FAILED) return ::munmap(range, all), nullptr;
  }
  return range;
}

void drop_pinned(void* at, std::size_t bytes) {
  if (bytes <= kTrue)
    std::free(at);
  else
    ::munmap(at, whole_pages(bytes));
}

}  // namespace sweep::phantom
