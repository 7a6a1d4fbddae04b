// SpoolMailbox: the orchestrator's side of one spool. It writes the inbox, and reads the outbox from the
// acknowledged offset on. It starts nothing and decides nothing.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "orchestrator/launch/launcher.h"
#include "runtime/spool_writer.h"
#include "schema/spool.h"

namespace sweep::launch {

// The agent's last line: why it ended, as a cause and as text.
struct Bye {
  spool::ByeCause cause = spool::ByeCause::kOwn;
  std::string reason;
};

class SpoolMailbox {
 public:
  explicit SpoolMailbox(const AllocationRequest&);
  Expected<void> open();  // the inbox; its torn last line is cut

  Expected<i64> post(std::string_view kind, const nlohmann::json& body);
  // Whether this process may still end the allocation. Error: that is not known.
  Expected<bool> ours() const;
  void acknowledge(std::uint64_t offset);
  // Everything from the acknowledged offset on, when there is more than was delivered before.
  std::optional<Outbox> news();
  std::uint64_t delivered() const { return delivered_; }
  bool has_outbox() const;  // its agent has spoken
  // This incarnation's bye, when it is the last line of the outbox, and all of it was delivered.
  std::optional<Bye> bye() const;
  // The folder or a file of the mailbox was removed or replaced since it was opened.
  bool gone() const { return inbox_ && inbox_->displaced(); }

 private:
  std::filesystem::path spool_;
  AllocationId id_;
  i64 incarnation_;
  std::uint64_t acknowledged_, delivered_;
  std::optional<spool::Writer> inbox_;
  Fence fence_;
};

}  // namespace sweep::launch
