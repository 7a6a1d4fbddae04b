// Starts and watches the agent of this machine, and reads its outbox to the end.
#include "orchestrator/launch/local/local_allocation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "orchestrator/launch/allocation_call.h"
#include "runtime/attempt_token.h"

namespace sweep::launch {

namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr auto kAfterBye = std::chrono::seconds(10);

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

void OutboxWatch::start(const std::filesystem::path& spool, const std::function<void()>& look) {
  if (const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC); fd >= 0) {  // else the timer alone looks
    ::inotify_add_watch(fd, spool.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
    inotify_.assign(fd);
    wait_for_change(look);
  }
  wait_for_timer(look);
}

void OutboxWatch::stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  inotify_.close(ignored);
  poll_.cancel();
}

void OutboxWatch::wait_for_change(const std::function<void()>& look) {
  inotify_.async_read_some(boost::asio::buffer(events_),
                           [this, look](const boost::system::error_code& error, std::size_t) {
                             if (error || stopped_) return;
                             look();
                             if (!stopped_) wait_for_change(look);
                           });
}

void OutboxWatch::wait_for_timer(const std::function<void()>& look) {
  poll_.expires_after(kPoll);
  poll_.async_wait([this, look](const boost::system::error_code& error) {
    if (error || stopped_) return;
    look();
    if (!stopped_) wait_for_timer(look);
  });
}

LocalAllocation::LocalAllocation(boost::asio::io_context& io, const LocalOptions& options,
                                 AllocationRequest request, Launcher::Sink report)
    : io_(io),
      options_(options),
      request_(std::move(request)),
      report_(std::move(report)),
      agent_(io),
      outbox_(io),
      after_bye_(io),
      mail_(request_) {}

LocalAllocation::~LocalAllocation() {
  abandon();
}

Expected<void> LocalAllocation::start() {
  if (auto opened = mail_.open(); !opened) return opened;
  if (auto started = start_agent(); !started)
    return fail(fmt::format("the agent of this machine: {}", started.error().message));
  agent_.on_end([self = shared_from_this()](const ProcessEnd& end) {
    self->deliver_the_rest(end, self->mail_.delivered() + 1);
  });
  outbox_.start(request_.spool, [self = shared_from_this()] { self->deliver(); });
  boost::asio::post(io_, [self = shared_from_this()] {
    const auto pid = self->agent_.pid();
    self->report(Started{self->request_.id, fmt::format("pid {} on this machine", pid), pid});
  });
  return {};
}

Expected<void> LocalAllocation::start_agent() {
  AgentCall call = call_for(request_);
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
  SWEEP_GET(const auto pid, start_logged(argv, environment_with(set), spool::agent_log(request_.spool)));
  auto watched = agent_.watch(pid);
  if (!watched) abandon();
  return watched;
}

void LocalAllocation::deliver() {
  if (ended_) return;
  auto news = mail_.news();
  if (!news) return;
  report(*news);
  if (mail_.bye()) limit_after_bye();
}

// An agent that said its last word has ended everything, and ends within milliseconds; one that somebody stopped does not.
void LocalAllocation::limit_after_bye() {
  after_bye_.expires_after(kAfterBye);
  after_bye_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->kill();
  });
}

// The agent is gone: deliver until there is nothing new, giving the receiver a turn to acknowledge in
// between.
void LocalAllocation::deliver_the_rest(const ProcessEnd& end, std::uint64_t before) {
  if (ended_) return;
  if (mail_.delivered() == before) return conclude(end);
  const std::uint64_t now = mail_.delivered();
  deliver();
  boost::asio::post(io_, [self = shared_from_this(), end, now] { self->deliver_the_rest(end, now); });
}

void LocalAllocation::conclude(const ProcessEnd& end) {
  agent_.unwatch();
  outbox_.stop();
  after_bye_.cancel();
  kill_orphans(request_.spool, request_.id);
  const auto bye = mail_.bye();
  Ended out{request_.id, bye ? bye->reason : "", !bye, false};
  std::error_code ec;
  if (out.lost &&
      !std::filesystem::exists(mail_.delivered() > 0 ? spool::outbox(request_.spool) : request_.spool, ec))
    out.reason = fmt::format("{} was removed while its agent used it", request_.spool.string());
  else if (out.lost)
    out.reason = end.signal > 0 ? fmt::format("the agent was ended by signal {}", end.signal)
                                : fmt::format("the agent ended with exit code {} and no last message; see {}",
                                              end.code, spool::agent_log(request_.spool).string());
  report(out);
  ended_ = true;
}

Expected<i64> LocalAllocation::post(std::string_view kind, const nlohmann::json& body) {
  if (ended_) return fail(fmt::format("allocation {} has ended", request_.id));
  return mail_.post(kind, body);
}

// With the agent all processes of its namespace end; without a namespace kill_orphans ends them.
void LocalAllocation::kill() {
  if (!ended_) agent_.kill();
}

void LocalAllocation::abandon() {
  report_ = nullptr;
  if (ended_) return;
  ended_ = true;
  outbox_.stop();
  after_bye_.cancel();
  agent_.release();
  if (agent_.pid() > 0) kill_orphans(request_.spool, request_.id);
}

void LocalAllocation::report(const Event& event) {
  if (report_ && !ended_) report_(event);
}

}  // namespace sweep::launch
