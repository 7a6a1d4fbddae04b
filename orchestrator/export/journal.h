// Journal: what has been delivered where, one line each, in FILE.db.exports.jsonl beside the database (framed
// and checksummed as a spool's mailbox). It holds no key. One export at a time may use it. Without it
// nothing is sent twice, since trackers look on the server too.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/expected.h"
#include "orchestrator/export/tracker.h"
#include "runtime/spool_writer.h"
#include "schema/spool.h"

namespace sweep::exports {

class Journal {
 public:
  // Error: another export holds it, or it cannot be written.
  static Expected<std::unique_ptr<Journal>> open(const std::filesystem::path& file);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  std::optional<Receipt> find(const std::string& place, const std::string& id) const;
  Expected<void> add(const std::string& place, const std::string& id, const Receipt&);

 private:
  Journal(spool::Writer writer, int lock) : writer_(std::move(writer)), lock_(lock) {}
  spool::Writer writer_;
  int lock_;
  std::map<std::pair<std::string, std::string>, Receipt> receipts_;
};

}  // namespace sweep::exports
