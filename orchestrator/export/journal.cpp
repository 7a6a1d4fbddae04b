#include "orchestrator/export/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "runtime/spool_writer.h"

namespace sweep::exports {
namespace {

constexpr std::string_view kDelivered = "delivered";

std::string text_member(const nlohmann::json& body, const char* key) {
  const auto it = body.find(key);
  return it != body.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

Expected<std::unique_ptr<Journal>> Journal::open(const std::filesystem::path& file) {
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0)
    return fail(ErrorKind::kUnwritable, file.string(),
                fmt::format("{}: {}; what was exported is remembered there, beside the database: where you "
                            "may not write, make a copy by `sweep backup FILE`, and export it with --db FILE",
                            file.string(), std::strerror(errno)));
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    return fail(fmt::format("{} is in use: another export of this database is under way; let it finish",
                            file.string()));
  }
  auto bytes = files::read_from(file, 0, SIZE_MAX);
  auto writer = bytes ? spool::Writer::open(file, "exports", 1) : tl::unexpected(bytes.error());
  if (!writer) {
    ::close(lock);
    return tl::unexpected(writer.error());
  }
  std::unique_ptr<Journal> journal(new Journal(std::move(*writer), lock));
  for (const spool::Line& line : spool::parse(*bytes).lines) {
    if (line.kind != kDelivered || !line.body.is_object()) continue;
    journal->receipts_[{text_member(line.body, "place"), text_member(line.body, "id")}] = {
        text_member(line.body, "remote"), text_member(line.body, "digest")};
  }
  return journal;
}

Journal::~Journal() {
  ::close(lock_);
}

std::optional<Receipt> Journal::find(const std::string& place, const std::string& id) const {
  const auto it = receipts_.find({place, id});
  return it == receipts_.end() ? std::nullopt : std::optional(it->second);
}

Expected<void> Journal::add(const std::string& place, const std::string& id, const Receipt& receipt) {
  const auto written = writer_.append(
      kDelivered, {{"place", place}, {"id", id}, {"remote", receipt.remote}, {"digest", receipt.digest}});
  if (!written) return tl::unexpected(written.error());
  receipts_[{place, id}] = receipt;
  return {};
}

}  // namespace sweep::exports
