#include "runtime/store_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sweep {
namespace {

using Clock = std::chrono::steady_clock;

i64 number_told(const Frame& answer) {
  const auto value = answer.head.find("value");
  return value != answer.head.end() && value->is_number_integer() ? value->get<i64>() : 0;
}

bool write_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

int unix_socket(const std::filesystem::path& path, bool listening) {
  const int folder = ::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  const std::string name = fmt::format("/proc/self/fd/{}/{}", folder, path.filename().string());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  int fd = -1, error = ENAMETOOLONG;
  if (name.size() < sizeof address.sun_path) {
    name.copy(address.sun_path, name.size());
    fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto* at = reinterpret_cast<const sockaddr*>(&address);
    const bool done = fd >= 0 && (listening ? ::bind(fd, at, sizeof address) == 0 && ::listen(fd, 4096) == 0
                                            : ::connect(fd, at, sizeof address) == 0);
    error = errno;
    if (!done && fd >= 0) ::close(fd);
    if (!done) fd = -1;
  }
  ::close(folder);
  errno = error;
  return fd;
}

Expected<StoreClient> StoreClient::connect(const std::filesystem::path& socket) {
  const int fd = unix_socket(socket, false);
  if (fd < 0)
    return fail(
        fmt::format("the agent's store {} cannot be reached: {}", socket.string(), std::strerror(errno)));
  return StoreClient(fd);
}

StoreClient::StoreClient(StoreClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), last_id_(other.last_id_), reader_(std::move(other.reader_)) {}

StoreClient::~StoreClient() {
  if (fd_ >= 0) ::close(fd_);
}

Expected<Frame> StoreClient::answer(i64 id, Clock::time_point deadline) {
  std::array<char, 65536> buffer;
  while (true) {
    SWEEP_GET(auto frame, reader_.next());
    if (frame && frame->head.value("id", i64{0}) == id) return std::move(*frame);
    if (frame) continue;  // the answer to a request that timed out
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left < 0) return fail("the store did not answer in time: a peer has not come this far");
    pollfd one{fd_, POLLIN, 0};
    if (::poll(&one, 1, static_cast<int>(std::min<i64>(left, 60'000)) + 1) <= 0) continue;
    const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail("the agent closed the store: the attempt is ending");
    reader_.feed({buffer.data(), static_cast<std::size_t>(n)});
  }
}

Expected<Frame> StoreClient::ask(Frame request, Timeout timeout) {
  request.head["id"] = ++last_id_;
  if (!write_whole(fd_, encode(request))) return fail("the agent closed the store: the attempt is ending");
  auto got = answer(last_id_, Clock::now() + std::min(timeout, Timeout(std::chrono::hours(24 * 365))));
  if (got && got->head.contains("error"))
    return fail("the store refuses: " + got->head["error"].get_ref<const std::string&>());
  return got;
}

Expected<void> StoreClient::set(const std::string& key, std::string_view value, Timeout timeout) {
  return ask({{{"op", "set"}, {"keys", {key}}}, std::string(value)}, timeout).map([](const Frame&) {});
}

Expected<std::string> StoreClient::get(const std::string& key, Timeout timeout) {
  return ask({{{"op", "get"}, {"keys", {key}}}, {}}, timeout).map([](Frame f) { return std::move(f.blob); });
}

Expected<void> StoreClient::wait(const std::vector<std::string>& keys, Timeout timeout) {
  return ask({{{"op", "wait"}, {"keys", keys}}, {}}, timeout).map([](const Frame&) {});
}

Expected<bool> StoreClient::check(const std::vector<std::string>& keys, Timeout timeout) {
  return ask({{{"op", "check"}, {"keys", keys}}, {}}, timeout).map([](const Frame& f) {
    return number_told(f) != 0;
  });
}

Expected<i64> StoreClient::add(const std::string& key, i64 amount, Timeout timeout) {
  return ask({{{"op", "add"}, {"keys", {key}}, {"amount", amount}}, {}}, timeout).map(number_told);
}

Expected<std::string> StoreClient::compare_set(const std::string& key, std::string_view expected,
                                               std::string_view desired, Timeout timeout) {
  Frame request{{{"op", "compare_set"}, {"keys", {key}}, {"expected", expected.size()}},
                std::string(expected)};
  request.blob += desired;
  return ask(std::move(request), timeout).map([&](Frame f) {
    return f.head.contains("absent") ? std::string(expected) : std::move(f.blob);
  });
}

Expected<bool> StoreClient::remove(const std::string& key, Timeout timeout) {
  return ask({{{"op", "delete"}, {"keys", {key}}}, {}}, timeout).map([](const Frame& f) {
    return number_told(f) != 0;
  });
}

Expected<i64> StoreClient::count(Timeout timeout) {
  return ask({{{"op", "count"}, {"keys", nlohmann::json::array()}}, {}}, timeout).map(number_told);
}

}  // namespace sweep
