// Spool paths, line framing and the tolerant parser.
#include "schema/spool.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstdlib>

#include "schema/codec.h"

namespace sweep::spool {

fs::path inbox(const fs::path& spool) {
  return spool / "inbox.jsonl";
}
fs::path outbox(const fs::path& spool) {
  return spool / "outbox.jsonl";
}
fs::path agent_log(const fs::path& spool) {
  return spool / "agent.log";
}
fs::path agent_lock(const fs::path& spool, i64 node) {
  return spool / (node == 0 ? "agent.lock" : "agent.lock." + std::to_string(node));
}

fs::path contact(const fs::path& spool) {
  return spool / "contact";
}

fs::path attempt_dir(const fs::path& spool, i64 attempt) {
  return spool / "attempts" / std::to_string(attempt);
}
i64 attempt_of(const fs::path& dir) {
  return std::atoll(dir.filename().c_str());
}
fs::path attempt_file(const fs::path& dir, i64 first_rank_of_node) {
  return dir / fmt::format("attempt_{:05}.json", first_rank_of_node);
}
fs::path rank_record(const fs::path& dir, i64 rank) {
  return dir / fmt::format("rank_{:05}.json", rank);
}
fs::path rank_log(const fs::path& dir, i64 rank) {
  return dir / fmt::format("rank_{:05}.log", rank);
}
fs::path rank_progress(const fs::path& dir, i64 rank) {
  return dir / fmt::format("rank_{:05}.progress", rank);
}
fs::path nccl_log(const fs::path& dir, i64 rank) {
  return dir / fmt::format("rank_{:05}.nccl", rank);
}
fs::path flight_trace(const fs::path& dir, i64 rank) {
  return dir / fmt::format("rank_{:05}.flight", rank);
}
fs::path rank_stacks(const fs::path& dir, i64 rank) {
  return dir / fmt::format("rank_{:05}.stacks", rank);
}
fs::path flight_request(const fs::path& dir, i64 rank) {
  return dir / fmt::format("flight_{:05}", rank);
}

namespace {

constexpr std::size_t kPrefix = 9;  // eight hexadecimal digits and a space

std::string checksum(std::string_view bytes) {
  return fmt::format("{:08x}", ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Expected<Line> parse_line(std::string_view row) {
  if (row.size() <= kPrefix || row[kPrefix - 1] != ' ') return fail("no checksum");
  const std::string_view bytes = row.substr(kPrefix);
  if (checksum(bytes) != row.substr(0, kPrefix - 1)) return fail("wrong checksum");
  auto parsed = parse_json(bytes);
  if (!parsed) return fail(parsed.error().message);
  const auto& object = *parsed;
  const auto integer = [&](const char* key) {
    return object.contains(key) && object[key].is_number_integer();
  };
  const auto string = [&](const char* key) { return object.contains(key) && object[key].is_string(); };
  if (!object.is_object() || !string("allocation") || !string("kind") || !integer("incarnation") ||
      !integer("seq") || !object.contains("body"))
    return fail("not a mailbox line: allocation, incarnation, seq, kind and body are needed");
  return Line{object["allocation"], object["incarnation"], object["seq"], object["kind"],
              std::move((*parsed)["body"])};
}

}  // namespace

// Spelt out, keys sorted as in every object of ours: a tree around the body would copy it twice.
std::string frame(std::string_view allocation, i64 incarnation, i64 seq, std::string_view kind,
                  const nlohmann::json& body) {
  const std::string bytes =
      fmt::format(R"({{"allocation":{},"body":{},"incarnation":{},"kind":{},"seq":{}}})", dump(allocation),
                  dump(body), incarnation, dump(kind), seq);
  return fmt::format("{} {}\n", checksum(bytes), bytes);
}

Parsed parse(std::string_view bytes, std::size_t max_line) {
  Parsed out;
  std::size_t start = 0;
  while (start < bytes.size()) {
    const std::size_t end = bytes.find('\n', start);
    if (end == std::string_view::npos) break;  // torn tail
    const std::string_view row = bytes.substr(start, end - start);
    auto line = row.size() > max_line ? fail("the line is too long") : parse_line(row);
    if (line)
      out.lines.push_back(std::move(*line));
    else
      out.damage.push_back(fmt::format("at byte {}: {}", start, line.error().message));
    start = end + 1;
  }
  out.consumed = start;
  return out;
}

}  // namespace sweep::spool
