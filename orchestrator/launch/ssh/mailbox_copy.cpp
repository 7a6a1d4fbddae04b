#include "orchestrator/launch/ssh/mailbox_copy.h"

#include "base/files.h"
#include "runtime/spool_writer.h"
#include "schema/spool.h"

namespace sweep::launch {
namespace {

constexpr std::size_t kInboxPart = 4u << 20;

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

}  // namespace sweep::launch
