#include "base/proc.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/files.h"

namespace sweep::proc {
namespace {

constexpr std::size_t kMostEnvironment = 1 << 20;

std::string path_of(std::string_view pid, std::string_view file) {
  return "/proc/" + std::string(pid) + '/' + std::string(file);
}

// The next field of `text`, which it takes away with the space behind it.
std::string_view next_field(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

template <typename Number>
bool read_number(std::string_view word, Number& out) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace

std::optional<Stat> read_stat(std::string_view text) {
  constexpr int kState = 3, kParent = 4, kStart = 22;
  const auto name_end = text.rfind(')');  // the name may hold spaces and brackets
  if (name_end == std::string_view::npos || name_end + 2 > text.size()) return std::nullopt;
  text.remove_prefix(name_end + 2);
  Stat out;
  for (int field = kState; field <= kStart; ++field) {
    const std::string_view word = next_field(text);
    if (word.empty()) return std::nullopt;
    if (field == kState) out.state = word[0];
    if (field == kParent && !read_number(word, out.parent)) return std::nullopt;
    if (field == kStart && !read_number(word, out.start_ticks)) return std::nullopt;
  }
  return out;
}

std::optional<Stat> stat_of(std::string_view pid) {
  return read_stat(files::read_proc(path_of(pid, "stat")));
}

std::optional<i64> read_processor_wait(std::string_view text) {
  i64 ran = 0, waited = 0;  // the third number is followed by a line feed
  if (!read_number(next_field(text), ran) || !read_number(next_field(text), waited) || text.empty())
    return std::nullopt;
  return waited;
}

std::map<pid_t, i64> processor_waits(std::string_view pid, int generations) {
  std::map<pid_t, i64> out;
  if (generations == 0) return out;
  std::error_code ec;
  for (const auto& thread : std::filesystem::directory_iterator(path_of(pid, "task"), ec)) {
    const auto waited = read_processor_wait(files::read_proc((thread.path() / "schedstat").string()));
    pid_t id = 0;
    if (waited && read_number(thread.path().filename().string(), id)) out[id] = *waited;
    const std::string children = files::read_proc((thread.path() / "children").string());
    for (std::string_view left = children; !left.empty();)
      if (const auto child = next_field(left); !child.empty())
        out.merge(processor_waits(child, generations - 1));
  }
  return out;
}

Environment::Environment(std::string_view text) : text_(1, '\0') {
  text_ += text;
}

Environment Environment::of(std::string_view pid) {
  return Environment(files::read_proc(path_of(pid, "environ"), kMostEnvironment));
}

std::optional<std::string_view> Environment::value(std::string_view name) const {
  const std::string wanted = '\0' + std::string(name) + '=';
  const auto at = text_.find(wanted);
  if (at == std::string::npos) return std::nullopt;
  return std::string_view(text_.c_str() + at + wanted.size());
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::optional<i64> memory_available() {
  constexpr std::string_view kKey = "MemAvailable:";
  const std::string text = files::read_proc("/proc/meminfo");
  const auto at = text.find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const auto digits = text.find_first_not_of(' ', at + kKey.size());
  const auto end = text.find(' ', digits);
  i64 kib = 0;
  if (digits == std::string::npos || end == std::string::npos ||
      !read_number(std::string_view(text).substr(digits, end - digits), kib))
    return std::nullopt;
  return kib * 1024;
}

}  // namespace sweep::proc
