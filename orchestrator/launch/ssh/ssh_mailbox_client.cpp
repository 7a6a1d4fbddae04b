#include "orchestrator/launch/ssh/ssh_mailbox_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>

#include "base/files.h"
#include "base/time.h"
#include "orchestrator/launch/ssh/ssh_refusal.h"
#include "runtime/spool_writer.h"
#include "schema/spool.h"

namespace sweep::launch {

namespace {

constexpr std::size_t kInboxPart = 4u << 20;
constexpr auto kBridgeTick = std::chrono::milliseconds(200);

}  // namespace

bool MailboxCopy::attach(std::uint64_t inbox_there) {
  inbox_there_ = inbox_there;
  return inbox_there <= files::size_of(spool::inbox(spool_));
}

std::optional<MailboxCopy::InboxPart> MailboxCopy::next_of_inbox() {
  if (!inbox_there_) return std::nullopt;
  auto bytes = files::read_from(spool::inbox(spool_), *inbox_there_, kInboxPart);
  if (!bytes || bytes->empty()) return std::nullopt;
  InboxPart out{*inbox_there_, std::move(*bytes)};
  *inbox_there_ += out.bytes.size();
  return out;
}

std::uint64_t MailboxCopy::outbox_size() const {
  return files::size_of(spool::outbox(spool_));
}

// There is no gap: the bridge sends from the size that we told it. What a crash of this machine lost, it
// sends again.
Expected<bool> MailboxCopy::keep(std::uint64_t offset, std::string_view bytes) {
  const std::uint64_t before = outbox_size();
  return spool::append_copy(spool::outbox(spool_), offset, bytes, spool::Copy::kUnsynced)
      .map([&](std::uint64_t size) { return size != before; });
}

SshMailboxClient::SshMailboxClient(boost::asio::io_context& io, SshShell& shell, std::string host,
                                   std::string line, std::filesystem::path spool, double give_up_s,
                                   MailboxEvents& events)
    : shell_(shell),
      host_(std::move(host)),
      line_(std::move(line)),
      events_(events),
      io_(io),
      timer_(io),
      copy_(std::move(spool)),
      connection_(give_up_s, steady_s()) {}

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
  input_ = {};
  copy_.detach();
  connection_.connecting(steady_s());
  channel_ = std::make_unique<Channel>(
      io_, shell_.words(host_, line_), [this](std::string_view bytes) { receive(bytes); },
      [this](const Channel::Ends& ends) {
        boost::asio::post(io_, [this, ends, channel = std::shared_ptr<Channel>(std::move(channel_))] {
          if (!stopped_) ended(ends);
        });
      });
  channel_->write(encode({{{"attach", copy_.outbox_size()}}, {}}));
}

void SshMailboxClient::receive(std::string_view bytes) {
  connection_.on_contact(steady_s());
  input_.feed(bytes);
  while (!stopped_) {
    auto frame = input_.next();
    if (!frame)
      return fail_for_good(fmt::format("{} sends what is no frame: {}", host_, frame.error().message));
    if (!*frame) return;
    obey(**frame);
  }
}

void SshMailboxClient::obey(const Frame& frame) {
  const nlohmann::json& head = frame.head;
  const auto offset = [&](const char* name) {
    return static_cast<std::uint64_t>(std::max<i64>(integer_of(head, name), 0));
  };
  if (head.contains("error")) return fail_for_good(fmt::format("{}: {}", host_, text_of(head, "error")));
  if (head.contains("attached")) attached(offset("attached"));
  if (!stopped_ && head.contains("outbox")) keep(offset("outbox"), frame.blob);
  if (!stopped_ && flag_of(head, "gone")) events_.agent_gone();
}

void SshMailboxClient::attached(std::uint64_t inbox_there) {
  if (!copy_.attach(inbox_there))
    return fail_for_good(
        fmt::format("the inbox on {} is longer than ours: another orchestrator writes to it", host_));
  if (lost_) events_.notice(fmt::format("connected to {} again; going on where it broke", host_));
  lost_ = false;
  told_.clear(), last_failure_.clear();
  connection_.attached();
  push();
  events_.mailbox_attached();
}

void SshMailboxClient::keep(std::uint64_t offset, std::string_view bytes) {
  const auto grew = copy_.keep(offset, bytes);
  if (!grew) return fail_for_good(fmt::format("the outbox on {}: {}", host_, grew.error().message));
  if (*grew) events_.outbox_grew();
}

void SshMailboxClient::push() {
  while (channel_) {
    const auto part = copy_.next_of_inbox();
    if (!part) return;
    channel_->write(encode({{{"inbox", part->offset}}, part->bytes}));
  }
}

// A failure of ssh itself (255) and a bridge that a signal ended are tried again. Any other code is final.
void SshMailboxClient::ended(const Channel::Ends& ends) {
  copy_.detach();
  if (ends.code > 0 && ends.code != 255 && ends.code != 3 && ends.code < 128)
    return fail_for_good(
        fmt::format("the bridge on {} ended with code {}: {}", host_, ends.code, ends.words));
  last_failure_ =
      ends.words.empty() ? "" : ": " + why_ssh_failed(by_hand(shell_.settings(), host_), ends.words);
  const bool is_new = told_.insert(last_failure_).second;
  if (!lost_)
    events_.notice(
        fmt::format("lost the connection to {}{}; its agents go on, connecting again", host_, last_failure_));
  else if (is_new && !last_failure_.empty())
    events_.notice(fmt::format("no connection to {} yet{}", host_, last_failure_));
  lost_ = true;
  shell_.drop(host_);
  connection_.lost(steady_s());
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
  if (connection_.given_up(now))
    return fail_for_good(
        fmt::format("no contact to {} for {:.0f} s{}", host_, connection_.give_up_s(), last_failure_));
  if (channel_ && connection_.beat_due(now)) channel_->write(encode({{{"beat", 1}}, {}}));
  if (channel_ && copy_.attached() && connection_.dead(now)) channel_->kill();  // ssh has not noticed
  if (!channel_ && connection_.reconnect_due(now)) connect();
  arm();
}

}  // namespace sweep::launch
