// ConfigReader: the members of a Hugging Face config.json, and what the readers of several families share.
// Missing keys take the defaults of the family's configuration class in the transformers package; sizes that
// define the model must be there. Dropout is not read: the step has none.
#pragma once
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/expected.h"
#include "base/integers.h"
#include "schema/codec.h"
#include "schema/model_spec.h"

namespace sweep::shape {

// Reads members of one JSON object and keeps the first error, so that a reader is a plain list of keys.
class ConfigReader {
 public:
  explicit ConfigReader(const nlohmann::json& object) : object_(object) {}

  // The member, or nullptr when absent or null.
  const nlohmann::json* find(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  bool null(const char* key) const {
    const auto it = object_.find(key);
    return it != object_.end() && it->is_null();
  }
  std::optional<i64> integer(const char* key) {
    const nlohmann::json* j = find(key);
    if (!j) return std::nullopt;
    const bool too_big = j->is_number_unsigned() && j->get<std::uint64_t>() > (std::uint64_t{1} << 62);
    if (!j->is_number_integer() || too_big) return wrong(key, "an integer below 2^62");
    return j->get<i64>();
  }
  std::optional<double> number(const char* key) {
    const nlohmann::json* j = find(key);
    if (!j) return std::nullopt;
    if (!j->is_number()) return wrong(key, "a number");
    return j->get<double>();
  }
  std::optional<bool> flag(const char* key) {
    const nlohmann::json* j = find(key);
    if (!j) return std::nullopt;
    if (!j->is_boolean()) return wrong(key, "true or false");
    return j->get<bool>();
  }
  std::optional<std::string> word(const char* key) {
    const nlohmann::json* j = find(key);
    if (!j) return std::nullopt;
    if (!j->is_string()) return wrong(key, "a string");
    return j->get<std::string>();
  }
  i64 required(const char* key) {
    const auto value = integer(key);
    if (!value) refuse(ErrorKind::kMissing, key, fmt::format("it has no '{}'", key));
    return value.value_or(0);
  }
  // Refuses any other value; `absent` is what a missing key means.
  template <class T>
  void only(const char* key, T value, T absent) {
    std::optional<T> found;
    if constexpr (std::is_same_v<T, bool>)
      found = flag(key);
    else if constexpr (std::is_floating_point_v<T>)
      found = number(key);
    else
      found = integer(key);
    if (found.value_or(absent) != value)
      refuse(ErrorKind::kUnsupported, key, fmt::format("'{}' other than {} is not supported", key, value));
  }
  template <class T>
  void only(const char* key, T value) {
    only(key, value, value);
  }
  void refuse(ErrorKind kind, std::string_view key, std::string why) {
    if (!error_) error_ = Error{std::move(why), kind, std::string(key)};
  }
  const std::optional<Error>& error() const { return error_; }  // the first

 private:
  std::nullopt_t wrong(const char* key, const char* wanted) {
    refuse(ErrorKind::kInvalidValue, key,
           fmt::format("'{}' is {}, not {}", key, short_text(object_.at(key)), wanted));
    return std::nullopt;
  }
  static std::string short_text(const nlohmann::json& j) {
    std::string text = dump(j);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return text;
  }
  const nlohmann::json& object_;
  std::optional<Error> error_;
};

// Text of a file in a message.
std::string clipped(const std::string&);
// Reads what decoders with rotary positions and a gated MLP share. `kv_heads` is their number if the file
// does not say it; 0: as many as heads.
void read_decoder(ConfigReader&, ModelSpec&, i64 kv_heads, double norm_eps);
// `supported`: the words of `key` that mean the family's activation; the first is the default.
void read_activation(ConfigReader&, const ModelSpec&, const char* key,
                     std::initializer_list<const char*> supported);
void read_rope(ConfigReader&, ModelSpec&, double theta);
// Reads which layers have the window: all, none, or all but every n-th. Other mixtures are refused.
void read_layer_types(ConfigReader&, ModelSpec&);
// Reads what Qwen's models share: a decoder whose window the layers below max_window_layers do not have.
void read_qwen(ConfigReader&, ModelSpec&, i64 kv_heads);

}  // namespace sweep::shape
