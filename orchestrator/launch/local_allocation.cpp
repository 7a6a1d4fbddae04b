// Starting, watching and hearing out the agent of this machine.
#include "orchestrator/launch/local_allocation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

#include "orchestrator/launch/leftovers.h"
#include "schema/attempt_token.h"

namespace sweep::launch {

namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (auto& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> marked_environment(const std::string& token) {
  const std::string prefix = std::string(kAttemptVariable) + "=";
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, prefix.c_str(), prefix.size()) != 0) out.emplace_back(*entry);
  out.push_back(prefix + token);
  return out;
}

// A new session (a terminal's Ctrl-C is for `sweep` alone), agent.log for its words, none of our files or
// signal masks.
int spawn_detached(pid_t& pid, std::vector<std::string> argv, std::vector<std::string> env,
                   const std::string& log) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error =
      ::posix_spawn(&pid, argv[0].c_str(), &files, &attributes, pointers(argv).data(), pointers(env).data());
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  return error;
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
  std::vector<std::string> argv = {options_.agent,   "run",
                                   "--spool",        request_.spool,
                                   "--allocation",   request_.id,
                                   "--incarnation",  std::to_string(request_.incarnation),
                                   "--slots",        std::to_string(request_.slots),
                                   "--rank-program", options_.rank,
                                   "--parent-pid",   std::to_string(::getpid())};
  if (!options_.allow_zygote) argv.emplace_back("--no-zygote");
  if (!options_.screen.empty()) argv.insert(argv.end(), {"--screen", options_.screen});
  if (!options_.allow_namespace) argv.emplace_back("--no-namespace");
  const std::string token = attempt_token(allocation_key(request_.id, request_.spool), 0);
  const int error = spawn_detached(pid_, argv, marked_environment(token), spool::agent_log(request_.spool));
  if (error != 0) {
    pid_ = 0;
    return fail(fmt::format("cannot start the agent {}: {}", options_.agent.string(), std::strerror(error)));
  }
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
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
    if (fd < 0) return;  // the poll serves
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
  clean_leftovers(request_.spool, request_.id);
  Ended out{request_.id, mail_.bye_reason(), false, false};
  out.lost = out.reason.empty();
  if (out.lost)
    out.reason = WIFSIGNALED(status_)
                     ? fmt::format("lost: the agent was ended by signal {}", WTERMSIG(status_))
                     : fmt::format("lost: the agent ended with exit code {} and no farewell; see {}",
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
  ::kill(pid_, SIGKILL);  // its namespace dies whole; without one, its end is followed by clean_leftovers
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
  clean_leftovers(request_.spool, request_.id);
}

void LocalAllocation::say(const Event& event) {
  if (report_ && !ended_) report_(event);
}

}  // namespace sweep::launch
