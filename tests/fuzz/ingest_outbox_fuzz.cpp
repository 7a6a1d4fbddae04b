// Any bytes as an outbox: read as they are, and as lines with a right checksum, then judged. Nothing may
// crash.
#include <boost/crc.hpp>
#include <cstdio>
#include <string>

#include "orchestrator/ingest/ingest.h"

namespace {

// Gives every line of the input the checksum it needs to get past the framing.
std::string framed(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    boost::crc_32_type crc;
    crc.process_bytes(bytes.data(), end);
    char prefix[16];
    std::snprintf(prefix, sizeof prefix, "%08x ", static_cast<unsigned>(crc.checksum()));
    out += prefix;
    out += bytes.substr(0, end);
    out += '\n';
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return out;
}

void digest(std::string_view bytes) {
  using namespace sweep;
  Attempt attempt;
  attempt.trial.dp = 2;
  ingest::AttemptReports reports;
  const ingest::Batch batch = ingest::read(bytes);
  if (batch.consumed > bytes.size()) __builtin_trap();
  for (const auto& message : batch.messages) {
    if (const auto* record = std::get_if<RankRecord>(&message)) reports.records[record->rank] = *record;
    if (const auto* exit = std::get_if<RankExit>(&message)) reports.exits[exit->rank] = *exit;
    if (const auto* end = std::get_if<AttemptEnd>(&message)) reports.end = *end;
    (void)ingest::judge(attempt, reports);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  digest(bytes);
  digest(framed(bytes));
  return 0;
}
