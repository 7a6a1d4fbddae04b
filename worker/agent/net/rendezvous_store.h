// RendezvousStore: the keys and values by which the ranks of one attempt find each other
// (runtime/store_client.h). Pure: it is told requests and answers them, some of them later; it knows no
// socket. A map of an attempt that has ended is thrown away whole.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "schema/frame.h"
#include "schema/trial.h"

namespace sweep::agent {

class RendezvousStore {
 public:
  // Answers the client that asked; may be called from within request(), for this client and for others that
  // waited.
  using Answer = std::function<void(i64 client, Frame)>;
  explicit RendezvousStore(Answer answer, std::size_t max_bytes = 64u << 20)
      : answer_(std::move(answer)), max_bytes_(max_bytes) {}
  void request(i64 client, const Frame&);

 private:
  struct Waiting {
    i64 client = 0, id = 0;
    std::vector<std::string> keys;
    bool wants_value = false;
  };
  Expected<Frame> handle(i64 client, const std::string& op, const std::vector<std::string>& keys,
                         const Frame&, bool& later);
  Expected<Frame> compare_set(const std::string& key, const Frame&);
  Expected<void> put(const std::string& key, std::string value);
  bool has_all(const std::vector<std::string>& keys) const;
  void wake();

  Answer answer_;
  std::size_t max_bytes_, bytes_ = 0;
  std::map<std::string, std::string> values_;
  std::vector<Waiting> waiting_;
};

}  // namespace sweep::agent
