// Mailbox: the agent's end of the spool's two files. It reads each inbox line once and never loses an outbox
// line: one that the disk does not take is kept, in order, until it does.
#pragma once
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/spool_writer.h"
#include "schema/spool.h"
#include "worker/agent/node/record_sink.h"

namespace sweep::agent {

class Mailbox final : public RecordSink {
 public:
  static Expected<Mailbox> open(const std::filesystem::path& spool, const std::string& allocation,
                                i64 incarnation);

  // New inbox lines for this allocation and incarnation, in order, each once. The file is reopened (NFS).
  std::vector<spool::Line> poll();
  void send(std::string_view kind, nlohmann::json body) override;
  // Tries the kept lines again; true: none is kept.
  bool flush();
  bool backlog() const { return !kept_.empty(); }
  // The folder was removed or replaced, or the outbox was cut.
  bool gone() const { return writer_.displaced(); }

 private:
  struct Kept {
    std::string kind;
    nlohmann::json body;
  };
  Mailbox(std::filesystem::path inbox, std::string allocation, i64 incarnation, spool::Writer writer);

  std::filesystem::path inbox_;
  std::string allocation_;
  i64 incarnation_;
  spool::Writer writer_;
  std::uint64_t offset_ = 0;
  i64 last_seq_ = 0;
  std::deque<Kept> kept_;
  // A full disk was said.
  bool waits_ = false;
};

}  // namespace sweep::agent
