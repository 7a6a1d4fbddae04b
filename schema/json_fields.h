// Field-by-field JSON reading and writing shared by the codec's parts; private to schema/.
#pragma once
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/expected.h"
#include "schema/codec.h"
#include "schema/outcome.h"
#include "schema/progress.h"

namespace sweep::fields {

using nlohmann::json;

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};
template <class T>
struct IsList<std::set<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};
template <class T>
struct IsPair : std::false_type {};
template <class A, class B>
struct IsPair<std::pair<A, B>> : std::true_type {};
template <class T>
struct IsAsked : std::false_type {};
template <class T>
struct IsAsked<Asked<T>> : std::true_type {};

// How the words of an enum are read.
template <class T>
inline constexpr std::nullptr_t kLookup = nullptr;
template <>
inline constexpr auto kLookup<Outcome> = outcome_from;
template <>
inline constexpr auto kLookup<OomKind> = oom_kind_from;
template <>
inline constexpr auto kLookup<Phase> = phase_from;
template <>
inline constexpr auto kLookup<RankStart> = rank_start_from;
template <>
inline constexpr auto kLookup<EndCause> = end_cause_from;

// Samples as columns. Reading refuses columns of different lengths and more than kMostSamples rows.
inline constexpr std::size_t kMostSamples = std::size_t{1} << 20;
json columns(const std::vector<StepSample>&);
bool read_columns(const json&, std::vector<StepSample>&);

template <class T>
json value(const T& v) {
  if constexpr (IsOptional<T>::value) {
    return v ? value(*v) : json(nullptr);
  } else if constexpr (!std::is_null_pointer_v<decltype(kLookup<T>)> || AxisChoice<T>) {
    return std::string(to_string(v));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::isfinite(v) ? json(v) : json(nullptr);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return v;
  } else if constexpr (std::is_same_v<T, std::vector<StepSample>>) {
    return columns(v);
  } else if constexpr (IsAsked<T>::value) {
    return value(v.answer);
  } else if constexpr (IsPair<T>::value) {
    return json::array({value(v.first), value(v.second)});
  } else if constexpr (IsMap<T>::value) {
    json object = json::object();
    for (const auto& [key, each] : v) object[key] = value(each);
    return object;
  } else if constexpr (IsList<T>::value) {
    json list = json::array();
    for (const auto& each : v) list.push_back(value(each));
    return list;
  } else {
    return to_json(v);
  }
}

// JsonType writes and reads a member of one type, given its address. One of these for each type keeps the loops over
// members, and their errors, out of templates.
struct JsonType {
  json (*write)(const void*);
  bool (*read)(const json&, void*, std::string* inner);  // as Reader::read
  bool (*has_no_content)(const void*);                   // 0, false, empty, absent
  bool is_optional;
  std::span<const std::string_view> words;  // of an axis that takes one of a list
};

// Reads members of one JSON object; the first fault is kept and later reads do nothing.
class Reader {
 public:
  Reader(const json& object, std::string_view what);

  template <class T>
  Reader& get(std::string_view key, T& out);
  Reader& get(std::string_view key, void* out, const JsonType&, bool needed);

  Expected<void> done() const;
  template <class T>
  Expected<T> done(T value) const {
    if (error_) return fail(*error_);
    return value;
  }

  // One value; false: wrong type or out of range. `inner`: takes the error of a record in it.
  template <class T>
  static bool read(const json& j, T& out, std::string* inner = nullptr) {
    if constexpr (IsOptional<T>::value) {
      if (j.is_null()) return out.reset(), true;
      typename T::value_type each{};
      if (!read(j, each, inner)) return false;
      out = std::move(each);
      return true;
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!j.is_boolean()) return false;
      out = j.template get<bool>();
      return true;
    } else if constexpr (std::is_integral_v<T>) {
      return read_integer(j, out);
    } else if constexpr (std::is_same_v<T, double>) {
      if (j.is_null()) return out = std::nan(""), true;  // how a non-finite number travels
      if (!j.is_number()) return false;
      out = j.template get<double>();
      return true;
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!j.is_string()) return false;
      out = j.template get<std::string>();
      return true;
    } else if constexpr (!std::is_null_pointer_v<decltype(kLookup<T>)>) {
      return read_name(j, kLookup<T>, out);
    } else if constexpr (AxisChoice<T>) {
      return read_name(j, choice_from<T>, out);
    } else if constexpr (std::is_same_v<T, std::vector<StepSample>>) {
      return read_columns(j, out);
    } else if constexpr (IsAsked<T>::value) {
      out.asked = true;
      return read(j, out.answer, inner);
    } else if constexpr (IsPair<T>::value) {
      return j.is_array() && j.size() == 2 && read(j[0], out.first, inner) && read(j[1], out.second, inner);
    } else if constexpr (IsMap<T>::value) {
      return read_map(j, out, inner);
    } else if constexpr (IsList<T>::value) {
      return read_list(j, out, inner);
    } else if constexpr (Recorded<T>) {
      const auto done = record_from_json(json_record(Of<T>()), j, &out);
      if (!done && inner != nullptr) *inner = done.error().message;
      return done.has_value();
    } else {
      auto record = from_json<T>(j);
      if (!record && inner != nullptr) *inner = record.error().message;
      if (!record) return false;
      out = std::move(*record);
      return true;
    }
  }

 private:
  template <class T>
  static bool read_integer(const json& j, T& out) {
    if (j.is_number_unsigned()) {
      const auto v = j.template get<std::uint64_t>();
      if (v > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return false;
      out = static_cast<T>(v);
      return true;
    }
    if (!j.is_number_integer()) return false;
    const auto v = j.template get<std::int64_t>();
    if (v < std::numeric_limits<T>::min() || v > std::numeric_limits<T>::max()) return false;
    out = static_cast<T>(v);
    return true;
  }

  template <class F, class T>
  static bool read_name(const json& j, F lookup, T& out) {
    if (!j.is_string()) return false;
    const auto found = lookup(j.template get_ref<const std::string&>());
    if (found) out = *found;
    return found.has_value();
  }

  template <class T>
  static bool read_list(const json& j, T& out, std::string* inner) {
    if (!j.is_array()) return false;
    out.clear();
    for (const auto& item : j) {
      typename T::value_type each{};
      if (!read(item, each, inner)) return false;
      out.insert(out.end(), std::move(each));
    }
    return true;
  }

  template <class T>
  static bool read_map(const json& j, T& out, std::string* inner) {
    if (!j.is_object()) return false;
    out.clear();
    for (const auto& [key, each] : j.items())
      if (!read(each, out[key], inner)) return false;
    return true;
  }

  const json& object_;
  std::string_view what_;
  std::optional<std::string> error_;
};

template <class T>
bool has_no_content(const T& member) {
  if constexpr (IsOptional<T>::value)
    return !member;
  else if constexpr (std::equality_comparable<T>)
    return member == T();
  else
    return false;
}

template <class T>
constexpr std::span<const std::string_view> words_of() {
  if constexpr (AxisChoice<T>) return ChoiceWords<T>::kWords;
  return {};
}

template <class T>
inline constexpr JsonType kJsonType = {
    [](const void* member) { return value(*static_cast<const T*>(member)); },
    [](const json& j, void* member, std::string* inner) {
      return Reader::read(j, *static_cast<T*>(member), inner);
    },
    [](const void* member) { return has_no_content(*static_cast<const T*>(member)); },
    IsOptional<T>::value,
    words_of<T>(),
};

template <class T>
Reader& Reader::get(std::string_view key, T& out) {
  return get(key, &out, kJsonType<T>, false);
}

}  // namespace sweep::fields
