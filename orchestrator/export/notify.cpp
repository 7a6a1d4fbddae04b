#include "orchestrator/export/notify.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "base/fail.h"
#include "base/files.h"
#include "base/process.h"
#include "orchestrator/export/http.h"

namespace sweep::exports {
namespace {

constexpr double kSecondsToSend = 10;
constexpr std::chrono::seconds kTimeOfACommand{30};
constexpr std::chrono::seconds kDrain{60};       // time at a run's end for notices that still wait
constexpr std::size_t kMostOutput = 64u << 10u;  // bytes of a command's output that are shown

Expected<void> post(const std::string& url, const std::string& body) {
  HttpOptions options;
  options.timeout_s = kSecondsToSend;
  auto http = Http::make(std::move(options), Credentials{{}, {url}});
  if (!http) return tl::unexpected(http.error());
  const auto reply = (*http)->send({.method = "POST", .url = url, .body = body, .status_alone = true});
  if (!reply)
    return fail(fmt::format("--notify: {}", Credentials{{}, {url}}.redacted(reply.error().sentence)));
  if (reply->status < 200 || reply->status > 299)
    return fail(fmt::format("--notify: the server answered {}", reply->status));
  return {};
}

// Shows what a command writes until it ends, as far as kMostOutput.
struct Output {
  bool is_late = false, is_cut = false;
};
Output show(int from, int ended) {
  Output out;
  std::size_t room = kMostOutput;
  std::array<char, 1u << 14u> bytes{};
  std::array<pollfd, 2> look{pollfd{from, POLLIN, 0}, pollfd{ended, POLLIN, 0}};
  const auto until = std::chrono::steady_clock::now() + kTimeOfACommand;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    out.is_late = left.count() <= 0 || ::poll(look.data(), look.size(), static_cast<int>(left.count())) <= 0;
    if (out.is_late) return out;
    const ssize_t got = look[0].revents != 0 ? ::read(from, bytes.data(), bytes.size()) : -1;
    if (got > 0) {
      const std::size_t shown = std::min(room, static_cast<std::size_t>(got));
      write_all(STDERR_FILENO, {bytes.data(), shown});
      room -= shown, out.is_cut = out.is_cut || shown < static_cast<std::size_t>(got);
    }
    if (got == 0) look[0].fd = -1;  // it has closed its output
    const bool has_ended = look[1].revents != 0 || (ended < 0 && got == 0);
    if (has_ended && (got <= 0 || out.is_cut)) return out;
  }
}

Expected<void> start(const std::string& command, const std::string& body) {
  const Descriptor in(::memfd_create("sweep-notify", MFD_CLOEXEC));
  int pipe[2];
  if (in.get() < 0 || !write_all(in.get(), body) || ::lseek(in.get(), 0, SEEK_SET) != 0 ||
      ::pipe2(pipe, O_CLOEXEC) != 0)
    return fail("--notify-command: no memory for its input");
  const Descriptor from(pipe[0]);
  auto to = std::make_unique<Descriptor>(pipe[1]);
  ChildProgram wanted{{"/bin/sh", "-c", command}};
  wanted.in = in.get(), wanted.out = wanted.err = to->get();
  wanted.group = ChildProgram::Group::kNew;
  const auto pid = start_program(wanted);
  to.reset();  // the command alone has it open
  if (!pid) return fail("--notify-command: " + pid.error().message);
  const Descriptor ended(open_pidfd(*pid));
  const auto [is_late, is_cut] = show(from.get(), ended.get());
  if (is_late) ::kill(-*pid, SIGKILL);
  const auto end = wait_for(*pid);
  if (is_late) return fail(fmt::format("--notify-command: ended after {} s", kTimeOfACommand.count()));
  if (end.code != 0)
    return fail(fmt::format("--notify-command: exit code {}, signal {}", end.code, end.signal));
  if (is_cut)
    return fail(fmt::format("--notify-command: what it wrote after {} bytes is left out", kMostOutput));
  return {};
}

}  // namespace

Expected<void> checked(const NotifyTargets& targets) {
  if (targets.url.empty() || targets.url.starts_with("https://") || targets.url.starts_with("http://"))
    return {};
  return fail(ErrorKind::kInvalidValue, "--notify",
              "--notify: not an address; https://HOST/PATH is expected");
}

Notifier::Notifier(NotifyTargets targets, std::function<void(const std::string&)> warn)
    : targets_(std::move(targets)), warn_(std::move(warn)) {
  const SignalsHeld held;  // they are for the thread that made this one
  thread_ = std::thread([this] { deliver_all(); });
}

Notifier::~Notifier() {
  {
    const std::lock_guard lock(mutex_);
    drained_by_ = std::chrono::steady_clock::now() + kDrain;
  }
  changed_.notify_all();
  thread_.join();
}

void Notifier::send(std::string body, Weight weight) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(body), weight});
  }
  changed_.notify_all();
}

void Notifier::deliver_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return drained_by_ || !waiting_.empty(); });
    if (drained_by_ && std::chrono::steady_clock::now() > *drained_by_) leave_out_minor();
    if (waiting_.empty()) return;
    const std::string body = std::move(waiting_.front().text);
    waiting_.pop_front();
    lock.unlock();
    const bool arrived = deliver(body);
    lock.lock();
    if (!arrived) leave_out_minor();
  }
}

void Notifier::leave_out_minor() {
  const auto left_out = std::erase_if(waiting_, [](const Body& b) { return b.weight == Weight::kMinor; });
  if (left_out > 0) warn_(fmt::format("--notify: {} more that waited are left out", left_out));
}

bool Notifier::deliver(const std::string& body) {
  bool arrived = true;
  const auto take = [&](const Expected<void>& done) {
    if (!done) warn_(done.error().message);
    arrived = arrived && done;
  };
  if (!targets_.url.empty()) take(post(targets_.url, body));
  if (!targets_.command.empty()) take(start(targets_.command, body + '\n'));
  return arrived;
}

}  // namespace sweep::exports
