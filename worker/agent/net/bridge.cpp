#include "worker/agent/net/bridge.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "base/files.h"
#include "base/time.h"
#include "runtime/spool_writer.h"
#include "schema/frame.h"
#include "schema/spool.h"
#include "worker/agent/process/process.h"

namespace sweep::agent {
namespace {

namespace fs = std::filesystem;
constexpr int kLookMs = 20;                                          // how often the outbox is looked at
constexpr double kBeatEvery = 1, kLivesEvery = 0.25, kSilence = 20;  // seconds
constexpr std::size_t kChunk = 4u << 20;

class Bridge {
 public:
  Bridge(fs::path spool, int in, int out)
      : spool_(std::move(spool)), in_(in), out_(out), reader_(kLongestFrame) {}

  int run() {
    last_input_s_ = steady_s();
    while (open_ && receive()) {
      if (offset_) look();
      if (steady_s() - beat_s_ >= kBeatEvery) {
        beat_s_ = steady_s();
        send({{{"beat", 1}}, {}});
      }
      if (steady_s() - last_input_s_ > kSilence)
        return 3;  // the connection is dead without having been closed
    }
    return code_;
  }

 private:
  // False: the orchestrator's end is closed.
  bool receive() {
    pollfd one{in_, POLLIN, 0};
    if (::poll(&one, 1, kLookMs) <= 0) return true;
    char bytes[65536];
    const ssize_t n = ::read(in_, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    last_input_s_ = steady_s();
    touch();
    reader_.feed({bytes, static_cast<std::size_t>(n)});
    while (open_) {
      auto frame = reader_.next();
      if (!frame) return refuse(frame.error().message), false;
      if (!*frame) return true;
      obey(**frame);
    }
    return false;
  }

  void obey(const Frame& frame) {
    if (const auto from = frame.head.find("attach"); from != frame.head.end() && from->is_number_unsigned()) {
      offset_ = from->get<std::uint64_t>();
      if (files::size_of(spool::outbox(spool_)) < *offset_)
        return refuse(fmt::format("{} is shorter than what was read of it before: it is not the same one",
                                  spool::outbox(spool_).string()));
      send({{{"attached", files::size_of(spool::inbox(spool_))}, {"agent", agent_lives(spool_)}}, {}});
    }
    if (const auto at = frame.head.find("inbox"); at != frame.head.end() && at->is_number_unsigned())
      append(at->get<std::uint64_t>(), frame.blob);
  }

  void append(std::uint64_t offset, std::string_view bytes) {
    const auto size = spool::append_copy(spool::inbox(spool_), offset, bytes, spool::Copy::kSynced);
    if (!size) return refuse(size.error().message);
    send({{{"inbox_at", *size}}, {}});
  }

  void look() {
    const auto path = spool::outbox(spool_);
    const bool due = steady_s() - lives_s_ >= kLivesEvery;
    const bool gone = due && !agent_lives(spool_);  // asked before the outbox is read to its end
    if (due) lives_s_ = steady_s();
    while (files::size_of(path) > *offset_ && open_) {
      const auto bytes = files::read_from(path, *offset_, kChunk);
      if (!bytes || bytes->empty()) break;
      send({{{"outbox", *offset_}}, *bytes});
      *offset_ += bytes->size();
    }
    if (!gone || !open_) return;
    send({{{"gone", true}}, {}});
    open_ = false;
  }

  void touch() const {
    const int fd = ::open(spool::contact(spool_).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return;
    ::futimens(fd, nullptr);
    ::close(fd);
  }

  void send(const Frame& frame) {
    const std::string bytes = encode(frame);
    std::string_view left = bytes;
    while (open_ && !left.empty()) {
      const ssize_t n = ::write(out_, left.data(), left.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) open_ = false;
      if (n > 0) left.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  void refuse(const std::string& why) {
    std::fprintf(stderr, "sweep-agent bridge: %s\n", why.c_str());
    send({{{"error", why}}, {}});
    code_ = 1;
    open_ = false;
  }

  const fs::path spool_;
  const int in_, out_;
  FrameReader reader_;
  std::optional<std::uint64_t> offset_;  // none: no orchestrator has attached yet
  double last_input_s_ = 0, beat_s_ = 0, lives_s_ = 0;
  bool open_ = true;
  int code_ = 0;
};

}  // namespace

int run_bridge(const fs::path& spool, int in, int out) {
  return Bridge(spool, in, out).run();
}

}  // namespace sweep::agent
