// Result: the outcome of an attempt over all that was reported of it, with its metrics. Its members, with
// their meaning, are in schema/records.def.
#pragma once
#include <string>

#include "schema/metrics.h"
#include "schema/outcome.h"
#include "schema/progress.h"
#include "schema/record_field.h"

namespace sweep {

struct Result {
#define RESULT(type, member, value, place) type member = value;
#include "schema/records.def"
#undef RESULT
};

template <RefersTo<Result> R, class F>
void for_each_field(R& record, F&& f) {
#define RESULT(type, member, value, place)                  \
  {                                                         \
    using namespace field_places;                           \
    constexpr FieldPlace at = place;                        \
    f(record_field<at.stored>(#member, at), record.member); \
  }
#include "schema/records.def"
#undef RESULT
}

}  // namespace sweep
