// Outbox bytes -> typed messages. Every line is judged by itself: one that cannot be read becomes a sentence
// of damage.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "orchestrator/ingest/ingest.h"
#include "schema/codec.h"

namespace sweep::ingest {
namespace {

using nlohmann::json;

constexpr std::size_t kMostPids = 1u << 20;  // ranks one attempt may claim
constexpr std::size_t kMostDamage = 100;     // sentences kept of one stretch; the rest is counted
constexpr std::size_t kLongestQuote = 80;

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
  if (line.kind == spool::kBye) return Bye{line.body.is_object() ? text(line.body, "reason") : std::string()};
  return fail("this kind of line is not known (written by a newer agent?)");
}

}  // namespace

Batch read(std::string_view outbox_bytes) {
  Batch batch;
  spool::Parsed parsed = spool::parse(outbox_bytes);
  batch.consumed = parsed.consumed;
  batch.damage = std::move(parsed.damage);
  for (const auto& line : parsed.lines) {
    auto read = message(line);
    if (read)
      batch.messages.push_back(std::move(*read));
    else
      batch.damage.push_back(fmt::format("line {} ('{}'): {}", line.seq, line.kind.substr(0, kLongestQuote),
                                         read.error().message));
  }
  if (batch.damage.size() > kMostDamage) {
    const std::size_t more = batch.damage.size() - kMostDamage;
    batch.damage.resize(kMostDamage);
    batch.damage.push_back(fmt::format("and {} more damaged lines", more));
  }
  return batch;
}

}  // namespace sweep::ingest
