#include "worker/command/meeting.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "runtime/store_client.h"
#include "schema/codec.h"

namespace sweep::command {
namespace {

namespace fs = std::filesystem;
constexpr const char* kKey = "command/meeting";
constexpr const char* kLoopback = "127.0.0.1";
constexpr auto kLook = std::chrono::milliseconds(10);
constexpr auto kTell = std::chrono::seconds(30);

fs::path file_of(const RankLaunch& launch) {
  return fs::path(launch.rendezvous_dir) / "meeting.json";
}

Expected<Meeting> meeting_from(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed || !parsed->is_object() || !parsed->contains("address") || !parsed->contains("port"))
    return fail("what rank 0 said about where to meet is no meeting: " + std::string(text.substr(0, 80)));
  const auto &address = (*parsed)["address"], &port = (*parsed)["port"];
  if (!address.is_string() || !port.is_number_integer()) return fail("the meeting has no address and port");
  return Meeting{address.get<std::string>(), port.get<int>()};
}

}  // namespace

ReservedPort::ReservedPort(ReservedPort&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), number_(other.number_) {}

ReservedPort::~ReservedPort() {
  if (socket_ >= 0) ::close(socket_);
}

Expected<ReservedPort> ReservedPort::reserve() {
  const auto failed = [](const char* what) {
    return fail("no port for the command's ranks: {}: {}", what, std::strerror(errno));
  };
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return failed("socket");
  ReservedPort out(socket, 0);
  const int yes = 1;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  if (::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0) return failed("SO_REUSEADDR");
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&any), size) != 0) return failed("bind");
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&any), &size) != 0) return failed("getsockname");
  out.number_ = ntohs(any.sin_port);
  return out;
}

Expected<Meeting> announce_meeting(const RankLaunch& launch, const ReservedPort& port) {
  const Meeting meeting{launch.store.empty() ? kLoopback : launch.address, port.number()};
  const std::string text = dump({{"address", meeting.address}, {"port", meeting.port}});
  if (launch.store.empty()) {
    SWEEP_TRY(files::write_atomically(file_of(launch), text));
    return meeting;
  }
  SWEEP_GET(auto store, StoreClient::connect(launch.store));
  SWEEP_TRY(store.set(kKey, text, kTell));
  return meeting;
}

Expected<Meeting> await_meeting(const RankLaunch& launch, std::chrono::milliseconds timeout) {
  if (!launch.store.empty()) {
    SWEEP_GET(auto store, StoreClient::connect(launch.store));
    return store.get(kKey, timeout).and_then([](const std::string& text) { return meeting_from(text); });
  }
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!fs::exists(file_of(launch))) {
    if (std::chrono::steady_clock::now() > deadline)
      return fail("rank 0 did not say within {} s where to meet",
                  std::chrono::duration_cast<std::chrono::seconds>(timeout).count());
    std::this_thread::sleep_for(kLook);
  }
  return files::read(file_of(launch), 4096).and_then([](const std::string& text) {
    return meeting_from(text);
  });
}

}  // namespace sweep::command
