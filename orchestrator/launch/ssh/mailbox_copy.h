// MailboxCopy: the two files of a mailbox whose other end is on another host: the inbox is sent there from
// where it ends there, the outbox is copied here byte for byte. No byte is lost or comes twice: both files
// only grow, and every byte has its offset.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace sweep::launch {

class MailboxCopy {
 public:
  explicit MailboxCopy(std::filesystem::path spool) : spool_(std::move(spool)) {}

  struct InboxPart {
    std::uint64_t offset = 0;
    std::string bytes;
  };
  void detach() { inbox_there_.reset(); }
  // The inbox there has so many bytes. False: more than ours has.
  bool attach(std::uint64_t inbox_there);
  bool attached() const { return inbox_there_.has_value(); }
  // The next part of the inbox that is to be sent; it counts as sent. nullopt: nothing is to be sent.
  std::optional<InboxPart> next_of_inbox();

  std::uint64_t outbox_size() const;
  // Keeps bytes of the outbox there. Whether the copy has grown.
  Expected<bool> keep(std::uint64_t offset, std::string_view bytes);

 private:
  const std::filesystem::path spool_;
  // How far the inbox has been sent; nullopt: not attached.
  std::optional<std::uint64_t> inbox_there_;
};

}  // namespace sweep::launch
