// Records for tests: one from its JSON text, and one with a value of its own in each field.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

#include "schema/codec.h"

namespace sweep::filled {

template <Recorded T>
T read_text(std::string_view text) {
  auto record = from_text<T>(text);
  if (!record) throw std::invalid_argument(record.error().message);
  return *std::move(record);
}

// Gives each member another value than any before, and none its default.
class Filler {
 public:
  template <Recorded T>
  T filled() {
    T record;
    give(record);
    return record;
  }
  Metrics metrics() {
    Metrics out;
    for_each_metric(out, [&](const FieldInfo&, auto& member) { give(member); });
    return out;
  }
  template <Recorded T>
  void give(T& record) {
    for_each_field(record, [&](const auto&, auto& member) { give(member); });
  }
  void give(i64& v) { v = ++last_; }
  void give(int& v) { v = static_cast<int>(++last_); }
  void give(bool& v) { v = !v; }
  void give(double& v) { v = static_cast<double>(++last_) + 0.5; }
  void give(std::string& v) { v = "text " + std::to_string(++last_); }
  void give(Outcome& v) { v = Outcome::kInvalid; }
  void give(OomKind& v) { v = OomKind::kHost; }
  void give(Phase& v) { v = Phase::kWarmup; }
  void give(EndCause& v) { v = EndCause::kNoTime; }
  void give(Metrics& v) { v = metrics(); }
  void give(Attempt& v) { v.id = ++last_; }
  template <class T>
  void give(std::optional<T>& v) {
    give(v.emplace());
  }
  template <class T>
  void give(Asked<T>& v) {
    v.asked = true;
    give(v.answer);
  }
  template <class A, class B>
  void give(std::pair<A, B>& v) {
    give(v.first), give(v.second);
  }
  template <class T>
  void give(std::map<std::string, T>& v) {
    give(v["key " + std::to_string(++last_)]);
  }
  void give(std::set<std::string>& v) { v = {"text " + std::to_string(++last_)}; }
  template <class T>
  void give(std::vector<T>& v) {
    v.resize(2);
    for (T& each : v) give(each);
  }

 private:
  i64 last_ = 1000;
};

}  // namespace sweep::filled
