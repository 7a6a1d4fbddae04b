// Reading the inbox, writing the outbox.
#include "worker/agent/node/mailbox.h"

#include <spdlog/spdlog.h>

#include "base/files.h"
#include "runtime/spool_writer.h"

namespace sweep::agent {

Mailbox::Mailbox(std::filesystem::path inbox, std::string allocation, i64 incarnation, spool::Writer writer)
    : inbox_(std::move(inbox)),
      allocation_(std::move(allocation)),
      incarnation_(incarnation),
      writer_(std::move(writer)) {}

Expected<Mailbox> Mailbox::open(const std::filesystem::path& spool, const std::string& allocation,
                                i64 incarnation) {
  SWEEP_GET(auto writer, spool::Writer::open(spool::outbox(spool), allocation, incarnation));
  return Mailbox(spool::inbox(spool), allocation, incarnation, std::move(writer));
}

std::vector<spool::Line> Mailbox::poll() {
  const auto bytes = files::read_from(inbox_, offset_);
  if (!bytes) {
    spdlog::warn("{}", bytes.error().message);
    return {};
  }
  if (bytes->empty()) return {};
  auto parsed = spool::parse(*bytes);
  for (const auto& damage : parsed.damage)
    spdlog::warn("{} from byte {}: {}", inbox_.string(), offset_, damage);
  offset_ += parsed.consumed;
  std::vector<spool::Line> out;
  for (auto& line : parsed.lines) {
    if (line.allocation != allocation_ || line.incarnation != incarnation_ || line.seq <= last_seq_) continue;
    last_seq_ = line.seq;
    out.push_back(std::move(line));
  }
  return out;
}

void Mailbox::send(std::string_view kind, nlohmann::json body) {
  kept_.push_back({std::string(kind), std::move(body)});
  flush();
}

bool Mailbox::flush() {
  while (!kept_.empty()) {
    const auto written = writer_.append(kept_.front().kind, kept_.front().body);
    if (!written) {
      if (!waits_) spdlog::warn("lines wait in memory: {}", written.error().message);
      waits_ = true;
      return false;
    }
    kept_.pop_front();
  }
  if (waits_) spdlog::info("every line is written again");
  waits_ = false;
  return true;
}

}  // namespace sweep::agent
