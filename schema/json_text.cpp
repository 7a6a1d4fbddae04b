// Bounded JSON parsing and safe dumping. The text is read by Boost.JSON's event parser, several times as fast
// as nlohmann's own: outbox lines are most of what a sweep reads.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "schema/codec.h"

// The parts of boost/json/src.hpp that the event parser needs: the rest, its own tree of values, costs a tenth of this
// room's compile.
#define BOOST_JSON_SOURCE
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/detail/impl/default_resource.ipp>
#include <boost/json/detail/impl/except.ipp>
#include <boost/json/detail/impl/stack.ipp>
#include <boost/json/impl/error.ipp>
#include <boost/version.hpp>
#if BOOST_VERSION >= 108300  // its parser reads exact numbers by functions of its own
#include <boost/json/detail/charconv/impl/from_chars.ipp>
#endif

namespace sweep {
namespace {

using nlohmann::json;
using JsonError = boost::json::error_code;
using Text = boost::json::string_view;

// Events -> tree. Of a key that comes twice the last value stands. Names and signatures are Boost.JSON's.
struct Builder {
  // NOLINTBEGIN(readability-identifier-naming)
  static constexpr std::size_t max_object_size = std::size_t(-1), max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1), max_string_size = std::size_t(-1);
  // NOLINTEND(readability-identifier-naming)

  bool on_document_begin(JsonError&) { return true; }
  bool on_document_end(JsonError&) { return true; }
  bool on_object_begin(JsonError&) { return open(json::object()); }
  bool on_object_end(std::size_t, JsonError&) { return close(); }
  bool on_array_begin(JsonError&) { return open(json::array()); }
  bool on_array_end(std::size_t, JsonError&) { return close(); }
  bool on_key_part(Text part, std::size_t, JsonError&) { return keep(part); }
  bool on_key(Text last, std::size_t, JsonError&) {
    auto& members = open_.back()->get_ref<json::object_t&>();
    member_ = &members.emplace_hint(members.end(), whole(last), nullptr)->second;
    return true;
  }
  bool on_string_part(Text part, std::size_t, JsonError&) { return keep(part); }
  bool on_string(Text last, std::size_t, JsonError&) { return add(whole(last)); }
  bool on_number_part(Text part, JsonError&) { return keep(part); }
  bool on_int64(std::int64_t v, Text, JsonError&) {
    parts_.clear();
    return v < 0 ? add(v) : add(static_cast<std::uint64_t>(v));
  }
  bool on_uint64(std::uint64_t v, Text, JsonError&) {
    parts_.clear();
    return add(v);
  }
  // The parser's own value may be off by a unit in the last place; ours is the nearest double.
  bool on_double(double, Text last, JsonError& error) {
    const std::string text = whole(last);
    double v = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), v).ec != std::errc())
      v = std::strtod(text.c_str(), nullptr);  // out of range: 0, the smallest, or infinite
    if (!std::isfinite(v)) error = boost::json::error::exponent_overflow;
    return std::isfinite(v) && add(v);
  }
  bool on_bool(bool v, JsonError&) { return add(v); }
  bool on_null(JsonError&) { return add(nullptr); }
  bool on_comment_part(Text, JsonError&) { return true; }
  bool on_comment(Text, JsonError&) { return true; }

  json root;

 private:
  template <class T>
  json* place(T&& v) {
    if (open_.empty()) return &(root = std::forward<T>(v));
    if (open_.back()->is_object()) return &(*member_ = std::forward<T>(v));
    return &open_.back()->get_ref<json::array_t&>().emplace_back(std::forward<T>(v));
  }
  template <class T>
  bool add(T&& v) {
    place(std::forward<T>(v));
    return true;
  }
  bool open(json v) {
    open_.push_back(place(std::move(v)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool keep(Text part) {
    parts_.append(part.data(), part.size());
    return true;
  }
  std::string whole(Text last) {
    if (parts_.empty()) return std::string(last.data(), last.size());
    parts_.append(last.data(), last.size());
    return std::exchange(parts_, {});
  }

  std::vector<json*> open_;  // arrays and objects around the next value; a parent does not move while open
  json* member_ = nullptr;   // member of the innermost object that waits for its value
  std::string parts_;
};

}  // namespace

Expected<json> parse_json(std::string_view bytes, std::size_t max_bytes, int max_depth) {
  if (bytes.size() > max_bytes)
    return fail("JSON of {} bytes is longer than the {} allowed", bytes.size(), max_bytes);
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  const std::size_t skipped = bytes.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  bytes.remove_prefix(skipped);
  boost::json::parse_options options;
  options.max_depth = static_cast<std::size_t>(max_depth);
  boost::json::basic_parser<Builder> parser(options);
  JsonError error;
  const std::size_t read = parser.write_some(false, bytes.data(), bytes.size(), error);
  if (error == boost::json::error::too_deep) return fail("JSON is nested deeper than {} levels", max_depth);
  if (!error && read < bytes.size()) error = boost::json::error::extra_data;
  if (error) return fail("not JSON at byte {}: {}", skipped + read + 1, error.message());
  return std::move(parser.handler().root);
}

std::string dump(const json& j) {
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sweep
