// Metrics: every number of a result. Absent means not measured.
#pragma once
#include "schema/trial.h"

namespace sweep {

struct Metrics {
#define METRIC(type, key, unit, better, title, sentence) std::optional<type> key;
#include "schema/fields.def"
#undef METRIC
  bool operator==(const Metrics&) const = default;
};

// Calls f(const FieldInfo&, std::optional<T>& member) for each metric of the table, in table order.
template <class MetricsRef, class F>
void for_each_metric(MetricsRef& m, F&& f) {
#define METRIC(type, key, unit, better, title, sentence)      \
  {                                                           \
    static const FieldInfo info{#key, #type, unit, sentence}; \
    f(info, m.key);                                           \
  }
#include "schema/fields.def"
#undef METRIC
}

}  // namespace sweep
