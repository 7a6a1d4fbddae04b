// Outbox bytes -> typed messages. Every line is read by itself: one that cannot be read becomes a sentence of
// damage.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "orchestrator/ingest/ingest.h"
#include "schema/codec.h"
#include "schema/node_part.h"

namespace sweep::ingest {
namespace {

using nlohmann::json;

// Sentences kept of one call; the rest is counted.
constexpr std::size_t kMostDamage = 100;
constexpr std::size_t kLongestQuote = 80;
// Parsed at once: the tree of a parsed line takes ten times its bytes.
constexpr std::size_t kPartBytes = 64u << 10;

template <class T>
Expected<Message> typed(const json& body) {
  auto read = from_json<T>(body);
  if (!read) return tl::unexpected<Error>(read.error());
  return std::move(*read);
}

Expected<Message> started(const json& body) {
  SWEEP_GET(auto start, from_json<AttemptStarted>(body));
  if (std::ssize(start.pids) > kMaxRanks) return fail("'pids' are more than an attempt can have");
  return start;
}

Expected<Message> message(const spool::Line& line) {
  if (line.kind == spool::kRankRecord) return typed<RankRecord>(line.body);
  if (line.kind == spool::kRankExit) return typed<RankExit>(line.body);
  if (line.kind == spool::kAttemptEnd) return typed<AttemptEnd>(line.body);
  if (line.kind == spool::kNode) return typed<NodeRecord>(line.body);
  if (line.kind == spool::kStarted) return started(line.body);
  if (line.kind == spool::kHello) return typed<AgentHello>(line.body);
  if (line.kind == spool::kNodeOut) return typed<NodeOut>(line.body);
  if (line.kind == spool::kBye) return typed<Leave>(line.body);
  return fail("this kind of line is not known (written by a newer agent?)");
}

// Whole lines from `start` on, about kPartBytes of them.
std::string_view part_at(std::string_view bytes, std::size_t start) {
  const std::size_t end = bytes.find('\n', std::min(start + kPartBytes, bytes.size()));
  return bytes.substr(start, end == std::string_view::npos ? end : end + 1 - start);
}

// Sentences of damage: the first ones are kept, the others counted.
class Damage {
 public:
  void add(std::string sentence) {
    if (++count_ <= kMostDamage) kept_.push_back(std::move(sentence));
  }
  std::vector<std::string> done() {
    if (count_ > kMostDamage) kept_.push_back(fmt::format("and {} more damaged lines", count_ - kMostDamage));
    return std::move(kept_);
  }

 private:
  std::vector<std::string> kept_;
  std::size_t count_ = 0;
};

void read_part(std::string_view part, std::size_t start, Batch& batch, Damage& damage) {
  spool::Parsed parsed = spool::parse(part);
  batch.consumed += parsed.consumed;
  for (const auto& sentence : parsed.damage)
    damage.add(start == 0 ? sentence : fmt::format("from byte {} on, {}", start, sentence));
  for (const auto& line : parsed.lines) {
    auto read = message(line);
    if (read)
      batch.messages.push_back(std::move(*read));
    else
      damage.add(fmt::format("line {} ('{}'): {}", line.seq, line.kind.substr(0, kLongestQuote),
                             read.error().message));
  }
}

}  // namespace

Batch read(std::string_view outbox_bytes) {
  Batch batch;
  Damage damage;
  while (batch.consumed < outbox_bytes.size()) {
    const std::size_t before = batch.consumed;
    read_part(part_at(outbox_bytes, before), before, batch, damage);
    if (batch.consumed == before) break;  // a torn last line: its rest is still to come
  }
  batch.damage = damage.done();
  return batch;
}

}  // namespace sweep::ingest
