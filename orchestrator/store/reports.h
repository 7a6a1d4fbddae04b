// Reports: what ranks and agents reported of attempts, and the outcomes that follow.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "schema/records.h"

namespace sweep::store {

struct StoreFile;

// The reports in one stretch of outbox bytes; applied with the new read offset in one transaction.
struct IngestBatch {
  std::string allocation;
  std::uint64_t new_offset = 0;
  std::vector<RankRecord> rank_records;
  std::vector<RankExit> rank_exits;
  std::vector<AttemptEnd> ends;
  std::vector<NodeRecord> nodes;
  std::vector<std::pair<i64, i64>> started;  // attempt id, unix ns
  std::vector<Result> results;               // outcomes that this stretch decides
};

// All that was reported of one attempt and stored so far: its outcome is decided from it after a crash.
struct StoredRecords {
  std::vector<RankRecord> records;  // one for each rank, samples included
  std::vector<RankExit> exits;      // one for each rank
  std::optional<AttemptEnd> end;
};

class Reports {
 public:
  explicit Reports(StoreFile& file) : file_(file) {}

  // Idempotent: a batch whose new_offset is not beyond the stored one changes nothing. Records of attempts
  // that are not the allocation's, or of ranks out of 0..world-1, are left out and noted as an event.
  // Survives the death of this process at once, and a power cut from the next begin_attempt or end_allocation
  // on: keep the outbox until then.
  Expected<void> ingest(const IngestBatch&);
  // An outcome without reports: node_lost, cancelled. Changes nothing when the attempt has one by reports.
  Expected<void> finish_attempt(const Result&);
  Expected<StoredRecords> records_of(i64 attempt);
  // The reports of an allocation's nodes about themselves, by their numbers.
  Expected<std::vector<NodeRecord>> nodes_of(const std::string& allocation);
  // Each node number that any allocation had, once.
  Expected<std::vector<NodeRecord>> nodes_seen();
  Expected<i64> results_in(const std::string& allocation);

 private:
  StoreFile& file_;
};

}  // namespace sweep::store
