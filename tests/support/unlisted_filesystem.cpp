// Preloaded, it gives every filesystem a number that no list has, as a shared one does that no one has thought of.
#include <dlfcn.h>
#include <sys/vfs.h>

namespace {

constexpr unsigned kNobodys = 0x5eed0001;

template <class Info>
int asked(const char* name, const char* path, Info* out) {
  const auto real = reinterpret_cast<int (*)(const char*, Info*)>(::dlsym(RTLD_NEXT, name));
  const int result = real(path, out);
  if (result == 0) out->f_type = kNobodys;
  return result;
}

}  // namespace

extern "C" {
int statfs(const char* path, struct statfs* out) noexcept {
  return asked("statfs", path, out);
}
int statfs64(const char* path, struct statfs64* out) noexcept {
  return asked("statfs64", path, out);
}
}
