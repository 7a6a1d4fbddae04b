#include "worker/rank/agent_store.h"

#include <c10/util/Exception.h>

namespace sweep::rank {
namespace {

// The value; an error is thrown as the exception by which a lost or late peer is known (group.h).
template <class T>
T value_or_throw(Expected<T> answer) {
  TORCH_CHECK_WITH(DistStoreError, answer.has_value(), answer.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

StoreClient connect_or_throw(const std::string& socket) {
  return value_or_throw(StoreClient::connect(socket));
}

std::string text_of_bytes(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::vector<uint8_t> bytes_of_text(const std::string& text) {
  return {text.begin(), text.end()};
}

}  // namespace

AgentStore::AgentStore(std::string socket, std::chrono::milliseconds timeout)
    : c10d::Store(timeout), socket_(std::move(socket)), client_(connect_or_throw(socket_)) {}

c10::intrusive_ptr<c10d::Store> AgentStore::clone() {
  return c10::make_intrusive<AgentStore>(socket_, getTimeout());
}

void AgentStore::set(const std::string& key, const std::vector<uint8_t>& value) {
  const std::lock_guard lock(mutex_);
  value_or_throw(client_.set(key, text_of_bytes(value), getTimeout()));
}

std::vector<uint8_t> AgentStore::compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                            const std::vector<uint8_t>& desired) {
  const std::lock_guard lock(mutex_);
  return bytes_of_text(value_or_throw(
      client_.compare_set(key, text_of_bytes(expected), text_of_bytes(desired), getTimeout())));
}

std::vector<uint8_t> AgentStore::get(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return bytes_of_text(value_or_throw(client_.get(key, getTimeout())));
}

int64_t AgentStore::add(const std::string& key, int64_t value) {
  const std::lock_guard lock(mutex_);
  return value_or_throw(client_.add(key, value, getTimeout()));
}

bool AgentStore::deleteKey(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return value_or_throw(client_.remove(key, getTimeout()));
}

bool AgentStore::check(const std::vector<std::string>& keys) {
  const std::lock_guard lock(mutex_);
  return value_or_throw(client_.check(keys, getTimeout()));
}

int64_t AgentStore::getNumKeys() {
  const std::lock_guard lock(mutex_);
  return value_or_throw(client_.count(getTimeout()));
}

void AgentStore::wait(const std::vector<std::string>& keys) {
  wait(keys, getTimeout());
}

void AgentStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  const std::lock_guard lock(mutex_);
  value_or_throw(client_.wait(keys, timeout));
}

}  // namespace sweep::rank
