// StoreClient: a rank's end of the rendezvous store of an attempt that spans nodes. The map itself is held by
// the head agent; a rank connects to the agent of its own node over a Unix socket, frame by frame (frame.h),
// one request and one answer at a time, so that no rank opens a port or looks up a name for it.
//
//   request {"id": n, "op": "...", "keys": [..]} and a blob      answer {"id": n, ...} and a blob
//     set  key, blob: value                            {}
//     get  key: answered once the key is there         {}, blob: value
//     wait keys: answered once all are there           {}
//     check keys                                       {"value": 0 or 1}
//     add  key, "amount"                               {"value": the sum}
//     compare_set key, "expected": bytes of the blob that are the expected value, the rest is the desired value
//                                                      {}, blob: the value there is now; {"absent": true}
//     delete key                                       {"value": how many were removed}
//     count                                            {"value": number of keys}
//   a refusal is {"id": n, "error": sentence}
// REQUIRES: one thread at a time. A request that timed out leaves the client usable: its late answer is
// dropped.
#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "schema/frame.h"
#include "schema/trial.h"

namespace sweep {

class StoreClient {
 public:
  using Timeout = std::chrono::milliseconds;

  static Expected<StoreClient> connect(const std::filesystem::path& socket);
  StoreClient(StoreClient&&) noexcept;
  StoreClient& operator=(StoreClient&&) = delete;
  ~StoreClient();

  Expected<void> set(const std::string& key, std::string_view value, Timeout);
  Expected<std::string> get(const std::string& key, Timeout);
  Expected<void> wait(const std::vector<std::string>& keys, Timeout);
  Expected<bool> check(const std::vector<std::string>& keys, Timeout);
  Expected<i64> add(const std::string& key, i64 amount, Timeout);
  // The value that is there afterwards; an absent key takes `desired` only when `expected` is empty, else
  // `expected` is returned.
  Expected<std::string> compare_set(const std::string& key, std::string_view expected,
                                    std::string_view desired, Timeout);
  Expected<bool> remove(const std::string& key, Timeout);
  Expected<i64> count(Timeout);

 private:
  explicit StoreClient(int fd) : fd_(fd), reader_(kLongestFrame) {}
  Expected<Frame> ask(Frame request, Timeout);
  Expected<Frame> answer(i64 id, std::chrono::steady_clock::time_point deadline);
  int fd_ = -1;
  i64 last_id_ = 0;
  FrameReader reader_;
};

// Binds or connects a Unix socket whose path may be longer than a socket address holds; -1: errno says why.
int unix_socket(const std::filesystem::path& path, bool listening);

}  // namespace sweep
