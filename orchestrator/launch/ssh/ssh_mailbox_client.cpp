#include "orchestrator/launch/ssh/ssh_mailbox_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>

#include "base/files.h"
#include "base/time.h"
#include "orchestrator/launch/ssh/ssh_refusal.h"
#include "runtime/spool_writer.h"

namespace sweep::launch {

namespace {

constexpr auto kBridgeTick = std::chrono::milliseconds(200);
constexpr double kBeatEvery = 2, kDeadAfter = 20;        // seconds; a bridge beats every second
constexpr double kFirstPause = 0.2, kLongestPause = 10;  // between two attempts to connect
constexpr std::size_t kInboxChunk = 4u << 20;

}  // namespace

SshMailboxClient::SshMailboxClient(boost::asio::io_context& io, SshShell& shell, std::string host,
                                   std::string line, std::filesystem::path spool, double give_up_s,
                                   Events events)
    : io_(io),
      shell_(shell),
      host_(std::move(host)),
      line_(std::move(line)),
      spool_(std::move(spool)),
      give_up_s_(give_up_s),
      events_(std::move(events)),
      timer_(io),
      contact_s_(steady_s()) {}

SshMailboxClient::~SshMailboxClient() {
  stop();
}

void SshMailboxClient::start() {
  connect();
  arm();
}

void SshMailboxClient::stop() {
  stopped_ = true;
  timer_.cancel();
  channel_.reset();
}

void SshMailboxClient::connect() {
  reader_ = FrameReader(kLongestFrame);
  greeting_ = {};
  inbox_there_.reset();
  again_s_ = 0;
  beat_s_ = steady_s();
  channel_ = std::make_unique<Channel>(
      io_, shell_.words(host_, line_), [this](std::string_view bytes) { heard(bytes); },
      [this](const Channel::Ends& ends) {
        boost::asio::post(io_, [this, ends, channel = std::shared_ptr<Channel>(std::move(channel_))] {
          if (!stopped_) ended(ends);
        });
      });
  channel_->write(encode({{{"attach", files::size_of(spool::outbox(spool_))}}, {}}));
}

void SshMailboxClient::heard(std::string_view bytes) {
  contact_s_ = steady_s();
  reader_.feed(greeting_.take(bytes));
  while (!stopped_) {
    auto frame = reader_.next();
    if (!frame)
      return fail_for_good(fmt::format("{} sends what is no frame: {}", host_, frame.error().message));
    if (!*frame) return;
    obey(**frame);
  }
}

void SshMailboxClient::obey(const Frame& frame) {
  const nlohmann::json& head = frame.head;
  if (head.contains("error")) return fail_for_good(fmt::format("{}: {}", host_, text_of(head, "error")));
  if (head.contains("attached")) {
    inbox_there_ = static_cast<std::uint64_t>(std::max<i64>(integer_of(head, "attached"), 0));
    if (*inbox_there_ > files::size_of(spool::inbox(spool_)))
      return fail_for_good(
          fmt::format("the inbox on {} is longer than ours: another orchestrator writes to it", host_));
    if (lost_) events_.remark(fmt::format("connected to {} again; going on where it broke", host_));
    lost_ = false;
    pause_s_ = 0;
    push();
    events_.attached();
  }
  if (head.contains("outbox"))
    keep(static_cast<std::uint64_t>(std::max<i64>(integer_of(head, "outbox"), 0)), frame.blob);
  if (!stopped_ && flag_of(head, "gone")) events_.gone();
}

// There is no gap: the bridge sends from the size that we told it. What a crash of this machine lost, it sends again.
void SshMailboxClient::keep(std::uint64_t offset, std::string_view bytes) {
  const auto path = spool::outbox(spool_);
  const std::uint64_t before = files::size_of(path);
  const auto size = spool::append_copy(path, offset, bytes, spool::Copy::kUnsynced);
  if (!size) return fail_for_good(fmt::format("the outbox on {}: {}", host_, size.error().message));
  if (*size == before) return;
  events_.news();
}

void SshMailboxClient::push() {
  while (channel_ && inbox_there_) {
    const auto bytes = files::read_from(spool::inbox(spool_), *inbox_there_, kInboxChunk);
    if (!bytes || bytes->empty()) return;
    channel_->write(encode({{{"inbox", *inbox_there_}}, *bytes}));
    *inbox_there_ += bytes->size();
  }
}

// A failure of ssh itself (255) and a bridge that a signal ended are tried again. Any other code is final.
void SshMailboxClient::ended(const Channel::Ends& ends) {
  inbox_there_.reset();
  if (ends.code > 0 && ends.code != 255 && ends.code != 3 && ends.code < 128)
    return fail_for_good(
        fmt::format("the bridge on {} ended with code {}: {}", host_, ends.code, ends.words));
  if (!lost_)
    events_.remark(
        fmt::format("lost the connection to {}{}{}; its agents go on, connecting again", host_,
                    ends.words.empty() ? "" : ": ",
                    ends.words.empty() ? "" : why_ssh_failed(by_hand(shell_.settings(), host_), ends.words)));
  lost_ = true;
  shell_.drop(host_);
  pause_s_ = std::clamp(pause_s_ * 2, kFirstPause, kLongestPause);
  again_s_ = steady_s() + pause_s_;
}

void SshMailboxClient::fail_for_good(const std::string& why) {
  if (stopped_) return;
  stopped_ = true;
  timer_.cancel();
  events_.failed(why);
}

void SshMailboxClient::arm() {
  timer_.expires_after(kBridgeTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !stopped_) tick();
  });
}

void SshMailboxClient::tick() {
  const double now = steady_s();
  if (now - contact_s_ > give_up_s_)
    return fail_for_good(fmt::format("no contact to {} for {:.0f} s", host_, give_up_s_));
  if (channel_ && now - beat_s_ > kBeatEvery) {
    beat_s_ = now;
    channel_->write(encode({{{"beat", 1}}, {}}));
  }
  if (channel_ && inbox_there_ && now - contact_s_ > kDeadAfter)
    channel_->kill();  // the connection is dead, and ssh has not noticed
  if (!channel_ && again_s_ > 0 && now >= again_s_) connect();
  arm();
}

}  // namespace sweep::launch
