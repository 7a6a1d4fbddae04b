#include "worker/agent/net/rendezvous_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/fail.h"

namespace sweep::agent {
namespace {

constexpr std::size_t kLongestKey = 4096, kMostKeys = 1 << 16;

// The request's keys; an error: they are none.
Expected<std::vector<std::string>> keys_of(const Frame& request) {
  std::vector<std::string> keys;
  const auto listed = request.head.find("keys");
  if (listed == request.head.end() || !listed->is_array() || listed->size() > kMostKeys)
    return fail("keys must be a list");
  for (const auto& key : *listed) {
    if (!key.is_string() || key.get_ref<const std::string&>().size() > kLongestKey)
      return fail("a key must be a text of at most {} bytes", kLongestKey);
    keys.push_back(key.get<std::string>());
  }
  return keys;
}

}  // namespace

void RendezvousStore::request(i64 client, const Frame& request) {
  const i64 id = integer_of(request.head, "id");
  const auto op = request.head.find("op");
  const auto keys = keys_of(request);
  bool later = false;
  Expected<Frame> out = fail("op must be a text");
  if (!keys)
    out = tl::unexpected(keys.error());
  else if (op != request.head.end() && op->is_string())
    out = handle(client, op->get<std::string>(), *keys, request, later);
  if (!out) out = Frame{{{"error", out.error().message}}, {}};
  if (!later) {
    out->head["id"] = id;
    answer_(client, std::move(*out));
  }
  wake();
}

Expected<Frame> RendezvousStore::handle(i64 client, const std::string& op,
                                        const std::vector<std::string>& keys, const Frame& request,
                                        bool& later) {
  Frame out{nlohmann::json::object(), {}};
  if (op == "count") return out.head["value"] = values_.size(), out;
  if (op == "check") return out.head["value"] = has_all(keys) ? 1 : 0, out;
  if (op == "wait" || op == "get") {
    if (op == "get" && keys.size() != 1) return fail("get takes one key");
    waiting_.push_back({client, integer_of(request.head, "id"), keys, op == "get"});
    later = true;
    return out;
  }
  if (keys.size() != 1) return fail("'{}' takes one key, or is no operation", op);
  const std::string& key = keys[0];
  if (op == "set") return put(key, request.blob).map([&] { return out; });
  if (op == "compare_set") return compare_set(key, request);
  if (op == "delete") {
    const auto found = values_.find(key);
    out.head["value"] = found != values_.end() ? 1 : 0;
    if (found != values_.end()) bytes_ -= key.size() + found->second.size(), values_.erase(found);
    return out;
  }
  if (op != "add") return fail("'{}' is no operation", op);
  i64 sum = 0;
  if (const auto found = values_.find(key); found != values_.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), sum);
  sum = static_cast<i64>(static_cast<std::uint64_t>(sum) +
                         static_cast<std::uint64_t>(integer_of(request.head, "amount")));
  out.head["value"] = sum;
  return put(key, std::to_string(sum)).map([&] { return out; });
}

Expected<Frame> RendezvousStore::compare_set(const std::string& key, const Frame& request) {
  const auto split =
      static_cast<std::size_t>(std::clamp<i64>(integer_of(request.head, "expected"), 0, request.blob.size()));
  const std::string expected = request.blob.substr(0, split), replacement = request.blob.substr(split);
  const auto found = values_.find(key);
  if (found == values_.end() && !expected.empty()) return Frame{{{"absent", true}}, {}};
  if (found == values_.end() || found->second == expected) SWEEP_TRY(put(key, replacement));
  return Frame{nlohmann::json::object(), values_[key]};
}

Expected<void> RendezvousStore::put(const std::string& key, std::string value) {
  const auto found = values_.find(key);
  const std::size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
  if (bytes_ - before + key.size() + value.size() > max_bytes_)
    return fail("the store is full: it holds at most {} bytes", max_bytes_);
  bytes_ = bytes_ - before + key.size() + value.size();
  values_[key] = std::move(value);
  return {};
}

bool RendezvousStore::has_all(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return values_.contains(key); });
}

void RendezvousStore::wake() {
  for (std::size_t i = 0; i < waiting_.size();) {
    if (!has_all(waiting_[i].keys)) {
      ++i;
      continue;
    }
    const Waiting due = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    answer_(due.client, {{{"id", due.id}}, due.wants_value ? values_[due.keys[0]] : std::string()});
  }
}

}  // namespace sweep::agent
