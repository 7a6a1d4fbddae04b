// Testimony in the database: what ranks and agents said about an attempt, written and read back.
#pragma once
#include <span>

#include "orchestrator/store/db.h"
#include "schema/records.h"
#include "schema/result.h"

namespace sweep::store {

// A second copy of a record replaces the first, samples included.
void write_record(Work&, const RankRecord&);
void write_exit(Work&, const RankExit&);
void write_end(Work&, const AttemptEnd&);
void write_started(Work&, i64 attempt, i64 unix_ns);
void write_node(Work&, std::string_view allocation, const NodeRecord&);
void write_result(Work&, const Result&);

std::vector<RankRecord> read_records(Work&, i64 attempt);
std::vector<RankExit> read_exits(Work&, i64 attempt);
std::optional<AttemptEnd> read_end(Work&, i64 attempt);

}  // namespace sweep::store
