// Outbox bytes -> typed messages. Every line is read by itself: one that cannot be read becomes a sentence of
// damage.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "orchestrator/ingest/ingest.h"
#include "schema/codec.h"

namespace sweep::ingest {
namespace {

using nlohmann::json;

// Processes that one attempt may state.
constexpr std::size_t kMostPids = 1u << 20;
// Sentences kept of one call; the rest is counted.
constexpr std::size_t kMostDamage = 100;
constexpr std::size_t kLongestQuote = 80;
// Parsed at once: the tree of a parsed line takes ten times its bytes.
constexpr std::size_t kPartBytes = 64u << 10;

std::optional<i64> integer(const json& body, const char* key) {
  const auto it = body.find(key);
  if (it == body.end() || !it->is_number_integer()) return std::nullopt;
  if (it->is_number_unsigned() && it->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    return std::nullopt;
  return it->get<i64>();
}

std::string text(const json& body, const char* key) {
  const auto it = body.find(key);
  return it != body.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Expected<Message> hello(const spool::Line& line) {
  if (!line.body.is_object()) return fail("an object is expected");
  return Hello{integer(line.body, "pid").value_or(0), text(line.body, "host"), text(line.body, "version"),
               line.incarnation};
}

Expected<Message> started(const json& body) {
  const auto attempt = body.is_object() ? integer(body, "attempt") : std::nullopt;
  if (!attempt) return fail("'attempt' is missing or no integer");
  Started out{*attempt, {}, integer(body, "unix_ns").value_or(0)};
  const auto pids = body.find("pids");
  if (pids == body.end()) return out;
  if (!pids->is_array() || pids->size() > kMostPids) return fail("'pids' is no list of process ids");
  for (const auto& pid : *pids) {
    if (!pid.is_number_integer()) return fail("'pids' is no list of process ids");
    out.pids.push_back(pid.get<i64>());
  }
  return out;
}

Expected<Message> node_out(const json& body) {
  const auto node = body.is_object() ? integer(body, "node") : std::nullopt;
  if (!node) return fail("'node' is missing or no integer");
  const auto lost = body.find("lost");
  return NodeOut{*node, text(body, "why"), lost != body.end() && lost->is_boolean() && lost->get<bool>()};
}

template <class T>
Expected<Message> typed(const json& body) {
  auto read = from_json<T>(body);
  if (!read) return tl::unexpected<Error>(read.error());
  return std::move(*read);
}

Expected<Message> message(const spool::Line& line) {
  if (line.kind == spool::kRankRecord) return typed<RankRecord>(line.body);
  if (line.kind == spool::kRankExit) return typed<RankExit>(line.body);
  if (line.kind == spool::kAttemptEnd) return typed<AttemptEnd>(line.body);
  if (line.kind == spool::kNode) return typed<NodeRecord>(line.body);
  if (line.kind == spool::kStarted) return started(line.body);
  if (line.kind == spool::kHello) return hello(line);
  if (line.kind == spool::kNodeOut) return node_out(line.body);
  if (line.kind == spool::kBye) return Bye{line.body.is_object() ? text(line.body, "reason") : std::string()};
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
