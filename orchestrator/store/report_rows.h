// Writes what ranks and agents reported of an attempt into the database, and reads it back.
#pragma once

#include "orchestrator/store/record_sql.h"
#include "schema/records.h"

namespace sweep::store {

// A second copy of a record replaces the first, samples included.
void write_record(Transaction&, const RankRecord&);
void write_exit(Transaction&, const RankExit&);
void write_end(Transaction&, const AttemptEnd&);
void write_started(Transaction&, i64 attempt, i64 unix_ns);
void write_node(Transaction&, std::string_view allocation, const NodeRecord&);
void write_result(Transaction&, const Result&);

std::vector<RankRecord> read_records(Transaction&, const TableColumns&, i64 attempt);
std::vector<RankExit> read_exits(Transaction&, const TableColumns&, i64 attempt);
std::vector<NodeRecord> read_nodes(Transaction&, const TableColumns&, std::string_view allocation);
std::optional<AttemptEnd> read_end(Transaction&, const TableColumns&, i64 attempt);

}  // namespace sweep::store
