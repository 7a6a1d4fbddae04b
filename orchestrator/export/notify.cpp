#include "orchestrator/export/notify.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process.h"
#include "orchestrator/export/http.h"

namespace sweep::exports {
namespace {

constexpr double kSecondsToSend = 10;
constexpr int kMsOfACommand = 30'000;

Expected<void> post(const std::string& url, const std::string& body) {
  HttpOptions options;
  options.timeout_s = kSecondsToSend;
  auto http = Http::make(std::move(options), Credentials{{}, {url}});
  if (!http) return tl::unexpected(http.error());
  const auto reply = (*http)->send({"POST", url, body});
  if (!reply)
    return fail(fmt::format("--notify: {}", Credentials{{}, {url}}.redacted(reply.error().sentence)));
  if (reply->status < 200 || reply->status > 299)
    return fail(fmt::format("--notify: the server answered {}", reply->status));
  return {};
}

Expected<void> start(const std::string& command, const std::string& body) {
  const Descriptor in(::memfd_create("sweep-notify", MFD_CLOEXEC));
  if (in.get() < 0 || !write_all(in.get(), body) || ::lseek(in.get(), 0, SEEK_SET) != 0)
    return fail("--notify-command: no memory for its input");
  ChildProgram wanted{{"/bin/sh", "-c", command}};
  wanted.in = in.get(), wanted.out = STDERR_FILENO;
  wanted.group = ChildProgram::Group::kNew;
  const auto pid = start_program(wanted);
  if (!pid) return fail("--notify-command: " + pid.error().message);
  const Descriptor ended(open_pidfd(*pid));
  pollfd look{ended.get(), POLLIN, 0};
  const bool late = ended.get() >= 0 && ::poll(&look, 1, kMsOfACommand) == 0;
  if (late) ::kill(-*pid, SIGKILL);
  const auto end = wait_for(*pid);
  if (late) return fail(fmt::format("--notify-command: ended after {} s", kMsOfACommand / 1000));
  if (end.code != 0)
    return fail(fmt::format("--notify-command: exit code {}, signal {}", end.code, end.signal));
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
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Notifier::send(std::string body) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(body));
  }
  changed_.notify_all();
}

void Notifier::deliver_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::string body = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    deliver(body);
    lock.lock();
  }
}

void Notifier::deliver(const std::string& body) {
  if (!targets_.url.empty())
    if (const auto sent = post(targets_.url, body); !sent) warn_(sent.error().message);
  if (!targets_.command.empty())
    if (const auto done = start(targets_.command, body); !done) warn_(done.error().message);
}

}  // namespace sweep::exports
