// AgentStore: the c10d::Store of ranks on several nodes. It connects to the agent of its own node
// (runtime/store_client.h); what it holds is the head agent's. No port, no name look-ups, nothing to clean up.
#pragma once
#include <mutex>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "runtime/store_client.h"

namespace sweep::rank {

class AgentStore final : public c10d::Store {
 public:
  // Throws c10::DistError when the socket cannot be reached.
  AgentStore(std::string socket, std::chrono::milliseconds timeout);

  using c10d::Store::compareSet;
  using c10d::Store::set;
  c10::intrusive_ptr<c10d::Store> clone() override;
  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override;
  std::vector<uint8_t> get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;

 private:
  const std::string socket_;
  std::mutex mutex_;  // Gloo's threads share a store
  StoreClient client_;
};

}  // namespace sweep::rank
