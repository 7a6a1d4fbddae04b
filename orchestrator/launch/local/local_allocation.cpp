// Starts and watches the agent of this machine, and reads its outbox to the end.
#include "orchestrator/launch/local/local_allocation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "orchestrator/launch/leftovers.h"
#include "runtime/attempt_token.h"
#include "schema/agent_call.h"

namespace sweep::launch {

namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);

// This process's environment with these variables (NAME=value) set.
std::vector<std::string> environment_with(const std::vector<std::string>& set) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> out = set;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::ranges::none_of(set, [&](const auto& wanted) { return name_of(wanted) == name_of(*entry); }))
      out.emplace_back(*entry);
  return out;
}

// The agent reads nothing and writes its messages to `log`.
Expected<pid_t> start_logged(std::vector<std::string> argv, std::vector<std::string> environment,
                             const std::string& log) {
  const Descriptor out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (out.get() < 0) return file_error("cannot be opened", log);
  ChildProgram wanted{std::move(argv)};
  wanted.environment = std::move(environment);
  wanted.out = wanted.err = out.get();
  wanted.group = ChildProgram::Group::kSession;
  return start_program(wanted);
}

}  // namespace

LocalAllocation::LocalAllocation(boost::asio::io_context& io, const LocalOptions& options,
                                 AllocationRequest request, Launcher::Sink report)
    : io_(io),
      options_(options),
      request_(std::move(request)),
      report_(std::move(report)),
      pidfd_(io),
      inotify_(io),
      poll_(io),
      mail_(request_) {}

LocalAllocation::~LocalAllocation() {
  abandon();
}

Expected<void> LocalAllocation::start() {
  if (auto opened = mail_.open(); !opened) return opened;
  if (auto spawned = spawn_agent(); !spawned) return spawned;
  watch_agent();
  watch_outbox();
  arm();
  boost::asio::post(io_, [self = shared_from_this()] {
    self->say(Started{self->request_.id, fmt::format("pid {} on this machine", self->pid_), self->pid_});
  });
  return {};
}

Expected<void> LocalAllocation::spawn_agent() {
  AgentCall call;
  call.spool = request_.spool;
  call.allocation = request_.id;
  call.incarnation = request_.incarnation;
  call.slots = request_.slots;
  call.rank_program = options_.rank;
  call.parent_pid = ::getpid();
  call.screen = options_.screen;
  call.zygote = options_.allow_zygote;
  call.pid_namespace = options_.allow_namespace;
  auto argv = agent_words(call);
  argv.insert(argv.begin(), options_.agent);
  std::vector<std::string> set;
  if (const auto found = options_.rehearsal.find(request_.hardware); found != options_.rehearsal.end())
    set = found->second;
  set.push_back(std::string(kAttemptVariable) + "=" +
                attempt_token(allocation_key(request_.id, request_.spool), 0));
  const auto pid = start_logged(argv, environment_with(set), spool::agent_log(request_.spool));
  if (!pid) return fail(fmt::format("the agent of this machine: {}", pid.error().message));
  pid_ = *pid;
  const int fd = open_pidfd(pid_);
  if (fd < 0) {
    const int cause = errno;
    abandon();
    return fail(fmt::format("pidfd_open failed: {}; Linux 5.3 or newer is needed", std::strerror(cause)));
  }
  pidfd_.assign(fd);
  return {};
}

void LocalAllocation::watch_agent() {
  pidfd_.async_wait(pidfd_.wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->ended_) return;
    self->reaped_ = ::waitpid(self->pid_, &self->status_, WNOHANG) == self->pid_;
    if (!self->reaped_) return self->watch_agent();
    self->last_words(self->mail_.delivered() + 1);
  });
}

void LocalAllocation::watch_outbox() {
  if (!inotify_.is_open()) {
    const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0) return;  // the timer looks instead
    ::inotify_add_watch(fd, request_.spool.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
    inotify_.assign(fd);
  }
  inotify_.async_read_some(boost::asio::buffer(events_),
                           [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
                             if (error || self->ended_) return;
                             self->deliver();
                             self->watch_outbox();
                           });
}

void LocalAllocation::arm() {
  poll_.expires_after(kPoll);
  poll_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->ended_) return;
    self->deliver();
    self->arm();
  });
}

void LocalAllocation::deliver() {
  if (auto news = mail_.news()) say(*news);
}

// The agent is gone: deliver until there is nothing new, giving the receiver a turn to acknowledge in
// between.
void LocalAllocation::last_words(std::uint64_t before) {
  if (ended_) return;
  if (mail_.delivered() == before) return conclude();
  const std::uint64_t now = mail_.delivered();
  deliver();
  boost::asio::post(io_, [self = shared_from_this(), now] { self->last_words(now); });
}

void LocalAllocation::conclude() {
  boost::system::error_code ignored;
  pidfd_.close(ignored);
  inotify_.close(ignored);
  poll_.cancel();
  kill_orphans(request_.spool, request_.id);
  const auto bye = mail_.bye();
  Ended out{request_.id, bye ? bye->reason : "", !bye, false};
  std::error_code ec;
  if (out.lost && !std::filesystem::exists(spool::outbox(request_.spool), ec))
    out.reason = fmt::format("{} was removed while its agent used it", request_.spool.string());
  else if (out.lost)
    out.reason = WIFSIGNALED(status_)
                     ? fmt::format("the agent was ended by signal {}", WTERMSIG(status_))
                     : fmt::format("the agent ended with exit code {} and no last message; see {}",
                                   WEXITSTATUS(status_), spool::agent_log(request_.spool).string());
  say(out);
  ended_ = true;
}

Expected<i64> LocalAllocation::post(std::string_view kind, const nlohmann::json& body) {
  if (ended_) return fail(fmt::format("allocation {} has ended", request_.id));
  return mail_.post(kind, body);
}

void LocalAllocation::kill() {
  if (ended_ || reaped_ || pid_ <= 0) return;
  ::kill(pid_,
         SIGKILL);  // with it all processes of its namespace die; without a namespace kill_orphans ends them
}

void LocalAllocation::abandon() {
  report_ = nullptr;
  if (ended_) return;
  ended_ = true;
  boost::system::error_code ignored;
  pidfd_.close(ignored);
  inotify_.close(ignored);
  poll_.cancel();
  if (pid_ <= 0) return;
  if (!reaped_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
  kill_orphans(request_.spool, request_.id);
}

void LocalAllocation::say(const Event& event) {
  if (report_ && !ended_) report_(event);
}

}  // namespace sweep::launch
