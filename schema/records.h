// Records: the reports of ranks and agents about an attempt. They are raw measurements: nothing here is
// derived. The members, with their meaning, are in schema/records.def. for_each_field(record, f) calls
// f(const RecordField<>&, member) for each, in that order.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schema/outcome.h"
#include "schema/progress.h"
#include "schema/record_field.h"
#include "schema/trial.h"

namespace sweep {

#define SWEEP_MEMBER(type, member, value, place) type member = value;
#define SWEEP_VISIT(type, member, value, place)             \
  {                                                         \
    using namespace field_places;                           \
    constexpr FieldPlace at = place;                        \
    f(record_field<at.stored>(#member, at), record.member); \
  }

struct StepSample {
#define STEP_SAMPLE SWEEP_MEMBER
#include "schema/records.def"
#undef STEP_SAMPLE
  bool operator==(const StepSample&) const = default;
};

struct SentTraffic {
#define SENT_TRAFFIC SWEEP_MEMBER
#include "schema/records.def"
#undef SENT_TRAFFIC
  bool operator==(const SentTraffic&) const = default;
};

struct RankRecord {
#define RANK_RECORD SWEEP_MEMBER
#include "schema/records.def"
#undef RANK_RECORD
};

struct RankExit {
#define RANK_EXIT SWEEP_MEMBER
#include "schema/records.def"
#undef RANK_EXIT
};

struct GpuError {
#define GPU_ERROR SWEEP_MEMBER
#include "schema/records.def"
#undef GPU_ERROR
  bool operator==(const GpuError&) const = default;
};

struct AttemptEnd {
#define ATTEMPT_END SWEEP_MEMBER
#include "schema/records.def"
#undef ATTEMPT_END
};

struct NodeRecord {
#define NODE_RECORD SWEEP_MEMBER
#include "schema/records.def"
#undef NODE_RECORD
};

template <RefersTo<StepSample> R, class F>
void for_each_field(R& record, F&& f) {
#define STEP_SAMPLE SWEEP_VISIT
#include "schema/records.def"
#undef STEP_SAMPLE
}

template <RefersTo<SentTraffic> R, class F>
void for_each_field(R& record, F&& f) {
#define SENT_TRAFFIC SWEEP_VISIT
#include "schema/records.def"
#undef SENT_TRAFFIC
}

template <RefersTo<RankRecord> R, class F>
void for_each_field(R& record, F&& f) {
#define RANK_RECORD SWEEP_VISIT
#include "schema/records.def"
#undef RANK_RECORD
}

template <RefersTo<RankExit> R, class F>
void for_each_field(R& record, F&& f) {
#define RANK_EXIT SWEEP_VISIT
#include "schema/records.def"
#undef RANK_EXIT
}

template <RefersTo<GpuError> R, class F>
void for_each_field(R& record, F&& f) {
#define GPU_ERROR SWEEP_VISIT
#include "schema/records.def"
#undef GPU_ERROR
}

template <RefersTo<AttemptEnd> R, class F>
void for_each_field(R& record, F&& f) {
#define ATTEMPT_END SWEEP_VISIT
#include "schema/records.def"
#undef ATTEMPT_END
}

template <RefersTo<NodeRecord> R, class F>
void for_each_field(R& record, F&& f) {
#define NODE_RECORD SWEEP_VISIT
#include "schema/records.def"
#undef NODE_RECORD
}

#undef SWEEP_MEMBER
#undef SWEEP_VISIT

}  // namespace sweep
