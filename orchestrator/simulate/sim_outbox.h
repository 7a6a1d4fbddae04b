// SimOutbox: the outbox of one simulated allocation: the lines that its agents and ranks would write, and how
// many bytes of them the run loop has acknowledged.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "orchestrator/simulate/simulated_outcomes.h"

namespace sweep::simulate {

class SimOutbox {
 public:
  SimOutbox() = default;
  SimOutbox(std::string allocation, i64 incarnation);

  void add_start(i64 attempt);
  // Every rank that measured writes a record; of a failure rank 0 writes one. The agent writes the end.
  void add_end(const Attempt&, const SimulatedOutcome&, bool cancelled);
  // The run loop has stored all bytes before this offset.
  void acknowledge(std::uint64_t offset);

  const std::string& unread() const { return unread_; }
  std::uint64_t offset() const { return offset_; }  // offset of the first unread byte

 private:
  void add(std::string_view kind, const nlohmann::json& body);

  std::string allocation_, unread_;
  i64 incarnation_ = 1, lines_ = 0;
  std::uint64_t offset_ = 0;
};

}  // namespace sweep::simulate
