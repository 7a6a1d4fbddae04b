#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "orchestrator/ingest/evidence.h"

namespace sweep::ingest {
namespace {

constexpr std::size_t kLongestWord = 80, kMostMembers = 65536;

std::string bounded_word(const std::string& word) {
  return word.substr(0, kLongestWord);
}

// "0-7", "0-24/8" (every eighth), "3"; with commas between them.
std::set<i64> expanded(const std::string& list) {
  std::set<i64> out;
  const char *at = list.data(), *end = at + list.size();
  const auto take = [&](i64& value) { at = std::from_chars(at, end, value).ptr; };
  while (at != end && out.size() < kMostMembers) {
    i64 first = -1, last = -1, stride = 1;
    take(first), last = first;
    if (at != end && *at == '-') ++at, take(last);
    if (at != end && *at == '/') ++at, take(stride);
    for (i64 i = first; i >= 0 && i <= last && stride > 0 && out.size() < kMostMembers; i += stride)
      out.insert(i);
    at = std::find(at, end, ',');
    if (at != end) ++at;
  }
  return out;
}

// "rank 3", "ranks 0-2, 5".
std::string named(const std::set<i64>& ranks) {
  std::vector<std::string> parts;
  for (auto it = ranks.begin(); it != ranks.end();) {
    const i64 first = *it;
    i64 last = first;
    while (++it != ranks.end() && *it == last + 1) last = *it;
    parts.push_back(last == first ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(parts, ", "));
}

// How one rank sees a group.
struct View {
  i64 begun = 0;
  std::string last;
};
// An operation in which some ranks wait.
struct Operation {
  std::string group, label, name;
  i64 number = 0;
  // The rank that waits for a message; each end counts its own.
  std::optional<i64> messenger;
  bool operator<(const Operation& o) const {
    return std::tie(group, number, name, messenger) < std::tie(o.group, o.number, o.name, o.messenger);
  }
};
struct Waits {
  std::set<i64> waiting, missing;
  // The other end of a message that both have entered: "rank 2 in recv 24".
  std::string other_end;
};

class Picture {
 public:
  explicit Picture(std::span<const RankPosition> ranks) {
    for (const RankPosition& rank : ranks) {
      if (!rank.flight.asked) continue;
      if (rank.flight.answer)
        for (const FlightGroup& group : *rank.flight.answer) add(rank.rank, group);
      else
        silent_[rank.rank] = bounded_word(rank.last_collective);
    }
    for (auto& [operation, waits] : all_)
      operation.messenger ? find_other_end(operation, waits) : find_missing(operation, waits);
  }

  std::optional<Standstill> conclusion() const {
    const std::pair<const Operation, Waits>* worst = nullptr;
    std::pair<int, std::size_t> best;
    std::optional<i64> rank;
    for (const auto& each : all_) {
      const auto culprit = culprit_of(each.second);
      const std::pair<int, std::size_t> weight(culprit ? weight_of(*culprit) : kAllHaveEntered,
                                               each.second.waiting.size());
      if (worst == nullptr || weight > best) worst = &each, best = weight, rank = culprit;
    }
    if (worst == nullptr) return std::nullopt;
    return Standstill{rank, sentence(worst->first, worst->second, rank)};
  }

 private:
  void add(i64 rank, const FlightGroup& group) {
    const std::string name = bounded_word(group.name), operation = bounded_word(group.waits_in);
    members_[name].merge(expanded(bounded_word(group.ranks)));
    views_[name][rank] = {group.begun, bounded_word(group.last)};
    if (operation.empty()) return;
    waits_.insert(rank);
    Operation key{name, bounded_word(group.group), operation, group.number.value_or(0), {}};
    if (group.peer) key.messenger = rank;
    Waits& waits = all_[key];
    waits.waiting.insert(rank);
    if (!group.peer) return;
    waits.missing.insert(*group.peer);
    messages_[{name, rank, *group.peer}] = {operation, key.number};
  }

  // A send that waits for a rank which itself waits to receive from the sender: both are there.
  void find_other_end(const Operation& operation, Waits& waits) const {
    const std::string matching = operation.name == "send" ? "recv" : "send";
    const i64 peer = *waits.missing.begin();
    const auto theirs = messages_.find({operation.group, peer, *operation.messenger});
    if (theirs == messages_.end() || theirs->second.first != matching) return;
    waits.missing.clear();
    waits.other_end = fmt::format("rank {} in {} {}", peer, matching, theirs->second.second);
  }

  // Gloo does not tell who is in a group: those that used it, and perhaps those that did not answer.
  std::set<i64> members_of(const std::string& group) const {
    std::set<i64> out = members_.at(group);
    if (!out.empty()) return out;
    for (const auto& [rank, view] : views_.at(group)) out.insert(rank);
    for (const auto& [rank, last] : silent_) out.insert(rank);
    return out;
  }

  void find_missing(const Operation& operation, Waits& waits) const {
    const auto& views = views_.at(operation.group);
    for (const i64 member : members_of(operation.group)) {
      const auto view = views.find(member);
      const bool elsewhere = view != views.end() && !waits.waiting.contains(member);
      if (elsewhere || silent_.contains(member)) waits.missing.insert(member);
    }
  }

  // A rank that did not answer explains more than one that works on. An operation that all have entered
  // explains more than a rank that waits itself.
  static constexpr int kAllHaveEntered = 2;
  int weight_of(i64 rank) const { return silent_.contains(rank) ? 4 : !waits_.contains(rank) ? 3 : 1; }

  std::optional<i64> culprit_of(const Waits& waits) const {
    std::optional<i64> out;
    for (const i64 rank : waits.missing)
      if (!out || weight_of(rank) > weight_of(*out)) out = rank;
    return out;
  }

  std::string sentence(const Operation& operation, const Waits& waits, std::optional<i64> rank) const {
    std::string out = fmt::format("{} {} in {} {} of group {}", named(waits.waiting),
                                  waits.waiting.size() == 1 ? "waits" : "wait", operation.name,
                                  operation.number, operation.label);
    if (!waits.other_end.empty())
      return out + ", " + waits.other_end + "; both have entered it, and it does not end";
    if (!rank)
      return out + fmt::format("; every rank {} has entered it, and it does not end",
                               members_.at(operation.group).empty() ? "that used the group" : "of the group");
    if (const auto silent = silent_.find(*rank); silent != silent_.end()) {
      out += fmt::format("; rank {} does not report where it is", *rank);
      return silent->second.empty() ? out
                                    : out + fmt::format("; the last that it entered was {}", silent->second);
    }
    const auto& views = views_.at(operation.group);
    const auto view = views.find(*rank);
    if (view != views.end() && !operation.messenger && view->second.begun >= operation.number)
      return out + fmt::format("; rank {} called it and does not wait in it", *rank);
    out += fmt::format("; {} {} not entered it", named(waits.missing),
                       waits.missing.size() == 1 ? "has" : "have");
    if (view == views.end() || view->second.last.empty()) return out;
    return out + fmt::format("; the last of rank {} was {} {}", *rank, view->second.last, view->second.begun);
  }

  // The keys are the group; the group and the rank.
  std::map<std::string, std::set<i64>> members_;
  std::map<std::string, std::map<i64, View>> views_;
  // Ranks that were asked and did not answer, with their last collective.
  std::map<i64, std::string> silent_;
  // Ranks that wait in any group.
  std::set<i64> waits_;
  // The key is group, rank and peer; the value is operation and number.
  std::map<std::tuple<std::string, i64, i64>, std::pair<std::string, i64>> messages_;
  std::map<Operation, Waits> all_;
};

}  // namespace

std::optional<Standstill> standstill(std::span<const RankPosition> ranks) {
  return Picture(ranks).conclusion();
}

}  // namespace sweep::ingest
