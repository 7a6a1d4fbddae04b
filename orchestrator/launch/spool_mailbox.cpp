#include "orchestrator/launch/spool_mailbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "runtime/spool_writer.h"
#include "schema/codec.h"

namespace sweep::launch {
namespace {
constexpr std::size_t kChunk = 80u << 20;      // above the longest line
constexpr std::size_t kByeWithin = 64u << 10;  // bytes from the end of the outbox
}  // namespace

SpoolMailbox::SpoolMailbox(const AllocationRequest& request)
    : spool_(request.spool),
      id_(request.id),
      incarnation_(request.incarnation),
      acknowledged_(request.outbox_offset),
      delivered_(request.outbox_offset),
      fence_(request.fence) {}

Expected<void> SpoolMailbox::open() {
  SWEEP_GET(auto writer, spool::Writer::open(spool::inbox(spool_), id_, incarnation_));
  inbox_.emplace(std::move(writer));
  return {};
}

Expected<i64> SpoolMailbox::post(std::string_view kind, const nlohmann::json& body) {
  if (!inbox_) return fail(fmt::format("allocation {} has no inbox", id_));
  if (!fence_) return inbox_->append(kind, body);
  Expected<i64> posted = fail("nothing was written");
  const auto done = fence_([&]() -> Expected<void> {
    posted = inbox_->append(kind, body);
    return {};
  });
  return done ? posted : tl::unexpected(done.error());
}

Expected<bool> SpoolMailbox::ours() const {
  if (!fence_) return true;
  const auto held = fence_([]() -> Expected<void> { return {}; });
  if (!held && held.error().kind != ErrorKind::kRefused) return tl::unexpected(held.error());
  return held.has_value();
}

bool SpoolMailbox::has_outbox() const {
  return delivered_ > 0 || files::size_of(spool::outbox(spool_)) > 0;
}

void SpoolMailbox::acknowledge(std::uint64_t offset) {
  acknowledged_ = std::max(acknowledged_, offset);
  delivered_ = std::max(delivered_, acknowledged_);
}

std::optional<Outbox> SpoolMailbox::news() {
  if (files::size_of(spool::outbox(spool_)) <= delivered_) return std::nullopt;
  auto bytes = files::read_from(spool::outbox(spool_), acknowledged_, kChunk);
  if (!bytes || acknowledged_ + bytes->size() <= delivered_) return std::nullopt;
  delivered_ = acknowledged_ + bytes->size();
  return Outbox{id_, acknowledged_, std::move(*bytes)};
}

std::optional<Bye> SpoolMailbox::bye() const {
  const auto file = spool::outbox(spool_);
  const std::uint64_t size = files::size_of(file);
  const std::uint64_t from = size > kByeWithin ? size - kByeWithin : 0;
  const auto bytes = files::read_from(file, from, kByeWithin);
  if (!bytes || bytes->empty() || bytes->back() != '\n') return std::nullopt;
  if (from + bytes->size() > delivered_) return std::nullopt;
  const auto before = bytes->rfind('\n', bytes->size() - 2);
  const auto parsed =
      spool::parse(std::string_view(*bytes).substr(before == std::string::npos ? 0 : before + 1));
  if (parsed.lines.empty()) return std::nullopt;
  const auto& line = parsed.lines.back();
  if (line.kind != spool::kBye || line.incarnation != incarnation_) return std::nullopt;
  const auto reason = from_json<Leave>(line.body).value_or(Leave()).reason;  // a damaged body is a bye too
  return Bye{spool::bye_cause(reason), reason.empty() ? "finished" : reason};
}

}  // namespace sweep::launch
