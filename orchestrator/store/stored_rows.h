// The fields of the rows that only the database has: for_each_field() of each, as records.h does it for
// records.
#pragma once
#include <optional>
#include <string>

#include "orchestrator/store/holder.h"
#include "orchestrator/store/store.h"
#include "schema/plan_entry.h"
#include "schema/record_field.h"

namespace sweep::store {

// One row of table allocation.
struct StoredAllocation {
  std::string id;
  i64 sweep = 0;
  std::string launcher, spool, hosts;
  i64 pid = 0, incarnation = 1;
  // How far its outbox was read.
  i64 read_offset = 0;
  i64 created_unix_ns = 0;
  std::optional<i64> ended_unix_ns;
  std::optional<std::string> end_reason;
  // The resources that it holds from its start to its end; nullopt: it has not started.
  std::optional<i64> nodes, gpus, started_unix_ns;
};

// Calls f(const RecordField<true>&, member) for a column that is called like its member, or `column`.
#define SWEEP_FIELD(member) f(record_field<true>(#member, field_places::column()), row.member)
#define SWEEP_FIELD_IN(column_name, member) \
  f(record_field<true>(#member, field_places::column(column_name)), row.member)

template <RefersTo<StoredAllocation> R, class F>
void for_each_field(R& row, F&& f) {
  SWEEP_FIELD(id);
  SWEEP_FIELD(sweep);
  SWEEP_FIELD(launcher);
  SWEEP_FIELD(spool);
  SWEEP_FIELD_IN("whereabouts", hosts);
  SWEEP_FIELD(pid);
  SWEEP_FIELD(incarnation);
  SWEEP_FIELD(read_offset);
  SWEEP_FIELD(created_unix_ns);
  SWEEP_FIELD(ended_unix_ns);
  SWEEP_FIELD(end_reason);
  SWEEP_FIELD(nodes);
  SWEEP_FIELD(gpus);
  SWEEP_FIELD(started_unix_ns);
}

// The fields without the number, which the database gives.
template <RefersTo<SweepRow> R, class F>
void for_each_field(R& row, F&& f) {
  SWEEP_FIELD(name);
  SWEEP_FIELD(question);
  SWEEP_FIELD(grid_path);
  SWEEP_FIELD(grid_text);
  SWEEP_FIELD_IN("options_json", options);
  SWEEP_FIELD(created_unix_ns);
}

// The columns of a lease about its holder; the rest of LeaseHolder is concluded from them.
template <RefersTo<LeaseHolder> R, class F>
void for_each_field(R& row, F&& f) {
  SWEEP_FIELD(host);
  SWEEP_FIELD(boot_id);
  SWEEP_FIELD(pid);
  SWEEP_FIELD(pid_start);
  SWEEP_FIELD(token);
  SWEEP_FIELD(beats);
  SWEEP_FIELD(heartbeat_unix_ns);
  SWEEP_FIELD(slurm_job);
  SWEEP_FIELD(slurm_cluster);
  SWEEP_FIELD(pid_namespace);
}

// The plan's columns about a trial of one sweep. The trial itself is in its own table.
template <RefersTo<PlanEntry> R, class F>
void for_each_field(R& row, F&& f) {
  SWEEP_FIELD_IN("model", trial.model);
  SWEEP_FIELD_IN("labels", trial.labels);
  SWEEP_FIELD(admitted);
  SWEEP_FIELD(verdict);
  SWEEP_FIELD(rule);
  SWEEP_FIELD(reason);
  SWEEP_FIELD_IN("predicted_bytes", predicted.bytes);
  SWEEP_FIELD_IN("predicted_step_ms", predicted.step_ms);
  SWEEP_FIELD_IN("predicted_seconds", predicted.seconds);
  SWEEP_FIELD_IN("place", order);
  SWEEP_FIELD(source);
}

#undef SWEEP_FIELD
#undef SWEEP_FIELD_IN

}  // namespace sweep::store
