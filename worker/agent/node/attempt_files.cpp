// Folders, pages and records of an attempt.
#include "worker/agent/node/attempt_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/fail.h"
#include "base/files.h"
#include "base/proc.h"
#include "schema/codec.h"
#include "schema/command_spec.h"
#include "schema/spool.h"
#include "worker/agent/net/rendezvous.h"

namespace sweep::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxRecord = 32u << 20;

Expected<fs::path> make_rendezvous(const fs::path& root, const fs::path& attempt_dir, i64 id,
                                   i64 first_rank) {
  std::error_code ec;
  const fs::path wanted = root / std::to_string(id);
  fs::remove_all(wanted, ec);
  if (private_folder(root.parent_path()) && private_folder(root) && private_folder(wanted)) return wanted;
  const fs::path beside = attempt_dir / fmt::format("rendezvous_{:05}", first_rank);  // this node's own
  fs::remove_all(beside, ec);
  if (private_folder(beside)) return beside;
  return file_error(fmt::format("cannot be made, nor can {}", wanted.string()), beside);
}

Expected<ProgressPage*> make_page(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return file_error("cannot be made", path);
  const ProgressPage* none = nullptr;
  const char zeros[sizeof *none] =
      {};  // written, not only sized: a full disk must show here and not as SIGBUS
  const bool written = ::write(fd, zeros, sizeof zeros) == static_cast<ssize_t>(sizeof zeros);
  const int error = errno;
  void* at = written ? ::mmap(nullptr, sizeof(ProgressPage), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (at == MAP_FAILED) return file_error("cannot be written", path, written ? errno : error);
  return static_cast<ProgressPage*>(at);
}

}  // namespace

Expected<void> find_working_folder(const Attempt& attempt) {
  if (!attempt.runs_command()) return {};
  const auto command = command_from(attempt.trial.program);
  std::error_code ec;
  if (!command || command->folder.empty() || fs::is_directory(command->folder, ec)) return {};
  return fail(ErrorKind::kNotFound, command->folder,
              "the working folder {} is not on {}: copy it there, or set workload.folder", command->folder,
              proc::host_name());
}

void AttemptFiles::Unmap::operator()(ProgressPage* page) const {
  ::munmap(page, sizeof *page);
}

Expected<AttemptFiles> AttemptFiles::make(const fs::path& spool, const fs::path& rendezvous_root,
                                          const NodePart& part) {
  const Attempt& attempt = part.attempt;
  AttemptFiles out;
  out.id_ = attempt.id;
  out.dir_ = spool::attempt_dir(spool, attempt.id);
  std::error_code ec;
  fs::create_directories(out.dir_, ec);
  if (ec) return file_error("cannot be made", out.dir_, ec.value());
  // Agents of other nodes may share the folder: each writes a file of its own, which no other replaces.
  out.attempt_file_ = spool::attempt_file(out.dir_, part.rank(0));
  SWEEP_TRY(files::write_atomically(out.attempt_file_, dump(sweep::to_json(attempt))));
  for (i64 index = 0; index < part.ranks; ++index) {
    const i64 rank = part.rank(index);
    fs::remove(spool::rank_record(out.dir_, rank), ec);  // the record of an earlier start
    SWEEP_GET(const auto page, make_page(spool::rank_progress(out.dir_, rank)));
    out.pages_.emplace_back(page);
  }
  SWEEP_GET(out.rendezvous_, make_rendezvous(rendezvous_root, out.dir_, attempt.id, part.rank(0)));
  return out;
}

AttemptFiles::~AttemptFiles() {
  remove_rendezvous();
}

void AttemptFiles::remove_rendezvous() {
  if (rendezvous_.empty()) return;
  std::error_code ec;
  fs::remove_all(rendezvous_, ec);
  rendezvous_.clear();
}

Heartbeat AttemptFiles::heartbeat(i64 index) const {
  const ProgressPage& page = *pages_[static_cast<std::size_t>(index)];
  Heartbeat out;
  out.phase = static_cast<Phase>(page.phase.load(std::memory_order_relaxed));
  out.part = static_cast<Part>(page.part.load(std::memory_order_relaxed));
  out.step = page.step.load(std::memory_order_relaxed);
  out.beats = page.beats.load(std::memory_order_relaxed);
  out.collective = page.collective.load(std::memory_order_relaxed);
  out.collective_done = page.collective_done.load(std::memory_order_relaxed);
  out.entered = page.entered.get();
  out.awaited = page.awaited.get();
  return out;
}

Expected<std::optional<RankRecord>> AttemptFiles::record(i64 rank) const {
  const fs::path path = spool::rank_record(dir_, rank);
  const auto bytes = files::read(path, kMaxRecord);
  if (!bytes && bytes.error().kind == ErrorKind::kNotFound) return std::nullopt;
  const auto parsed = bytes ? parse_json(*bytes, kMaxRecord) : tl::unexpected(bytes.error());
  auto record = parsed ? from_json<RankRecord>(*parsed) : tl::unexpected(parsed.error());
  if (!record) return fail("{}: {}", path.string(), record.error().message);
  if (record->attempt != id_ || record->rank != rank)
    return fail("{} speaks of attempt {} rank {}", path.string(), record->attempt, record->rank);
  return std::optional<RankRecord>(std::move(*record));
}

}  // namespace sweep::agent
