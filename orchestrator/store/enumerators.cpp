#include "orchestrator/store/enumerators.h"

#include <algorithm>
#include <cctype>

#include "schema/outcome.h"

namespace sweep::store {
namespace {

#define SWEEP_ENUMERATOR(type, name) \
  { #type "::" #name, static_cast < int>(type::name) }
constexpr Enumerator kEnumerators[] = {
    SWEEP_ENUMERATOR(State, kPending),       SWEEP_ENUMERATOR(State, kPosted),
    SWEEP_ENUMERATOR(State, kRunning),       SWEEP_ENUMERATOR(State, kFinished),
    SWEEP_ENUMERATOR(State, kRetired),       SWEEP_ENUMERATOR(Outcome, kOk),
    SWEEP_ENUMERATOR(Outcome, kOom),         SWEEP_ENUMERATOR(Outcome, kHang),
    SWEEP_ENUMERATOR(Outcome, kTimeout),     SWEEP_ENUMERATOR(Outcome, kCrash),
    SWEEP_ENUMERATOR(Outcome, kInvalid),     SWEEP_ENUMERATOR(Outcome, kNodeLost),
    SWEEP_ENUMERATOR(Outcome, kUnsupported), SWEEP_ENUMERATOR(Outcome, kCancelled),
    SWEEP_ENUMERATOR(Outcome, kPruned),      SWEEP_ENUMERATOR(Outcome, kFailedUnknown),
    SWEEP_ENUMERATOR(OomKind, kDevice),      SWEEP_ENUMERATOR(OomKind, kHost),
};
#undef SWEEP_ENUMERATOR

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

}  // namespace

std::span<const Enumerator> enumerators() {
  return kEnumerators;
}

std::string with_numbers(std::string_view sql) {
  std::string out;
  std::size_t done = 0;
  for (auto at = sql.find("::"); at != std::string_view::npos; at = sql.find("::", at + 2)) {
    std::size_t begin = at, end = at + 2;
    while (begin > done && is_word(sql[begin - 1])) --begin;
    while (end < sql.size() && is_word(sql[end])) ++end;
    const auto found = std::ranges::find(kEnumerators, sql.substr(begin, end - begin), &Enumerator::name);
    if (found == std::end(kEnumerators)) continue;
    out.append(sql, done, begin - done).append(std::to_string(found->number));
    done = end;
  }
  return out.append(sql, done);
}

std::string infrastructure_outcomes() {
  std::string list;
  for (const Enumerator& each : kEnumerators)
    if (each.name.starts_with("Outcome::") && is_infrastructure(static_cast<Outcome>(each.number)))
      list += (list.empty() ? "" : ", ") + std::string(each.name);
  return "(" + list + ")";
}

}  // namespace sweep::store
