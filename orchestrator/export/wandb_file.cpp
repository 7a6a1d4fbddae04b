#include "orchestrator/export/wandb_file.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <ctime>

#include "base/expected.h"
#include "base/files.h"
#include "orchestrator/export/wandb_wire.h"
#include "schema/spool.h"

namespace sweep::exports {
namespace {

constexpr std::size_t kBlock = 32768, kChunkHead = 7;
constexpr std::string_view kFileHead("\x3aW&B\xE1\xBE\x00", 7);

// A protobuf message being written, field by field.
class Message {
 public:
  Message& number(unsigned field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& text(unsigned field, std::string_view bytes) {
    varint(field << 3 | 2);
    varint(bytes.size());
    bytes_ += bytes;
    return *this;
  }
  Message& text_if(unsigned field, std::string_view bytes) {
    return bytes.empty() ? *this : text(field, bytes);
  }
  Message& message(unsigned field, const Message& inner) { return text(field, inner.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// {key 1, value_json 16}: how config, history and summary hold a value.
Message item(const std::string& key, const std::string& json) {
  return Message().text(1, key).text(16, json);
}

// LevelDB's log: blocks of 32 KiB, a record in as many chunks as it needs.
class Log {
 public:
  void add(const Message& record) {
    std::string_view left = record.bytes();
    for (bool first = true; first || !left.empty(); first = false) {
      std::size_t room = kBlock - bytes_.size() % kBlock;
      if (room < kChunkHead) {
        bytes_.append(room, '\0');
        room = kBlock;
      }
      const std::string_view part = left.substr(0, room - kChunkHead);
      left.remove_prefix(part.size());
      const int type = first ? (left.empty() ? 1 : 2) : (left.empty() ? 4 : 3);
      chunk(static_cast<char>(type), part);
    }
  }
  std::string take() { return std::move(bytes_); }

 private:
  void little_endian(std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void chunk(char type, std::string_view part) {
    const std::string checked = type + std::string(part);
    const auto* start = reinterpret_cast<const Bytef*>(checked.data());
    little_endian(static_cast<std::uint32_t>(::crc32_z(0, start, checked.size())), 4);
    little_endian(static_cast<std::uint32_t>(part.size()), 2);
    bytes_ += checked;
  }
  std::string bytes_{kFileHead};
};

Message run_message(const TrackerRun& run, const std::string& entity, const std::string& project) {
  Message config;
  for (const auto& [key, json] : wandb_config(run)) config.message(1, item(key, json));
  Message out;
  out.text(1, run.id).text_if(2, entity).text(3, project).message(4, config).text(6, run.sweep);
  out.text(7, kWandbJobType).text(8, run.name).text_if(9, run.question);
  for (const std::string& tag : wandb_tags(run)) out.text(10, tag);
  const auto begun_ns = static_cast<std::uint64_t>(std::max(run.begun_unix_s, 0.0) * 1e3) * 1'000'000;
  return out.message(17, Message().number(1, begun_ns / 1'000'000'000).number(2, begun_ns % 1'000'000'000));
}

}  // namespace

std::string wandb_file(const TrackerRun& run, const std::string& entity, const std::string& project) {
  Log log;
  std::uint64_t number = 0;
  const auto record = [&](unsigned field, const Message& inner) {
    log.add(Message().number(1, ++number).message(field, inner));
  };
  record(17, run_message(run, entity, project));
  for (const HistoryPoint& point : run.history) {
    Message history;
    for (const auto& [key, json] : wandb_history(point)) history.message(1, item(key, json));
    history.message(2, Message().number(1, static_cast<std::uint64_t>(point.step)));
    record(2, history);
  }
  Message summary;
  for (const auto& [key, json] : wandb_summary(run)) summary.message(1, item(key, json));
  record(3, summary);
  const double runtime = run.history.empty() ? 0 : run.history.back().runtime_s;
  record(18, Message()
                 .number(1, static_cast<std::uint64_t>(wandb_exit_code(run)))
                 .number(2, static_cast<std::uint64_t>(runtime)));
  return log.take();
}

Expected<WandbOffline::Written> WandbOffline::write(const TrackerRun& run) const {
  const auto seconds = static_cast<std::time_t>(run.ended_unix_s);
  const auto folder = dir_ / fmt::format("offline-run-{:%Y%m%d_%H%M%S}-{}", fmt::gmtime(seconds), run.id);
  const auto file = folder / fmt::format("run-{}.wandb", run.id);
  const std::string bytes = wandb_file(run, entity_, project_);
  std::error_code ec;
  const bool there = std::filesystem::exists(file, ec);
  if (there) {
    SWEEP_GET(const auto old, files::read(file, SIZE_MAX - 1));
    if (old == bytes) return Written::kUnchanged;
    if (std::filesystem::exists(file.string() + ".synced", ec))
      return fail(fmt::format(
          "{} was sent by `wandb sync` already and its trial has other values now; it is left as it is "
          "(sending it again would double its history). Remove the folder to write it anew",
          file.string()));
  }
  std::filesystem::create_directories(folder, ec);
  if (ec) return fail(fmt::format("{}: the folder cannot be made: {}", folder.string(), ec.message()));
  SWEEP_TRY(files::write_atomically(file, bytes));
  return there ? Written::kReplaced : Written::kNew;
}

}  // namespace sweep::exports
