// Trial: one full configuration. Its id hashes the canonical requested configuration (codec.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/integers.h"
#include "schema/axis_choice.h"
#include "schema/model_spec.h"

namespace sweep {

using f64 = double;
using flag = bool;
using text = std::string;
using opt_i64 = std::optional<std::int64_t>;

struct Trial {
  std::string model;  // label: catalogue name, or the name of the config.json's folder; not hashed
  ModelSpec spec;     // hashed
#define AXIS(type, key, def, domain, unit, title, sentence) type key = def;
#define CHOICE(Enum, key, def, unit, title, sentence, ...) Enum key = Enum::def;
#include "schema/fields.def"
#undef CHOICE
#undef AXIS
  // Axes computed by the grid's `derive:` that are no axis of the table; labels for grouping. Sorted by name;
  // not hashed. (Kept as text so that a label never changes what runs.)
  std::string labels;  // JSON object, or empty

  i64 world() const {
    return dp * tp * pp * cp;
  }
  bool operator==(const Trial&) const = default;
};

struct FieldInfo {
  std::string_view key, type, unit, sentence;
};

// Calls f(const FieldInfo&, const T& default_value, T& member) for each axis of the table, in table order.
template <class TrialRef, class F>
void for_each_axis(TrialRef& t, F&& f) {
#define AXIS(type, key, def, domain, unit, title, sentence)   \
  {                                                           \
    static const FieldInfo info{#key, #type, unit, sentence}; \
    static const type default_value = def;                    \
    f(info, default_value, t.key);                            \
  }
#define CHOICE(Enum, key, def, unit, title, sentence, ...)     \
  {                                                            \
    static const FieldInfo info{#key, "text", unit, sentence}; \
    static const Enum default_value = Enum::def;               \
    f(info, default_value, t.key);                             \
  }
#include "schema/fields.def"
#undef CHOICE
#undef AXIS
}

}  // namespace sweep
