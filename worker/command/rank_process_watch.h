// RankProcessWatch: of a launcher's processes the one that reports as this rank. The launcher alone learns how it
// ended; this sees when.
#pragma once
#include <optional>

#include "base/files.h"
#include "worker/command/trainer_report.h"

namespace sweep::command {

class RankProcessWatch {
 public:
  explicit RankProcessWatch(i64 rank) : rank_(rank) {}

  // Follows the process that the report names, if it is one of this attempt with this rank. To be called again and
  // again; looks once at each process that is named.
  void follow(const TrainerReport&);
  // Readable once the process has ended; -1: there is none.
  int handle() const { return handle_ ? handle_->get() : -1; }
  // Time of its end. nullopt: it runs, or is not known. Call this soon after the handle is readable.
  std::optional<i64> ended_unix_ns();

 private:
  i64 rank_;
  std::optional<i64> pid_, ended_unix_ns_;
  std::optional<Descriptor> handle_;
};

}  // namespace sweep::command
