#include "runtime/progress_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <stdexcept>

namespace sweep {

ProgressWriter::ProgressWriter(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info {};
  const bool usable =
      file >= 0 && fstat(file, &info) == 0 && info.st_size >= static_cast<off_t>(sizeof(ProgressPage));
  void* memory = mmap(nullptr, sizeof(ProgressPage), PROT_READ | PROT_WRITE,
                      usable ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, usable ? file : -1, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot map the progress page " + path);
  page_ =
      usable ? static_cast<ProgressPage*>(memory) : new (memory) ProgressPage;  // zero bytes are a valid page
  phase(Phase::kStart);
  page_->magic.store(kProgressMagic);
}

ProgressWriter::~ProgressWriter() {
  munmap(page_, sizeof(ProgressPage));
}

void ProgressWriter::phase(Phase phase) {
  page_->phase.store(static_cast<std::uint32_t>(phase), std::memory_order_relaxed);
  part(Part::kNone);
}

void ProgressWriter::part(Part part) {
  page_->part.store(static_cast<std::uint32_t>(part), std::memory_order_relaxed);
  page_->beats.fetch_add(1, std::memory_order_release);
}

void ProgressWriter::begin_step() {
  page_->step.fetch_add(1, std::memory_order_relaxed);
  page_->beats.fetch_add(1, std::memory_order_release);
}

}  // namespace sweep
