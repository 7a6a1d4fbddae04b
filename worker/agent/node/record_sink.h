// RecordSink: where the lines of an attempt go: the outbox, or who started the attempt for itself.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace sweep::agent {

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // A line of a kind of schema/spool.h.
  virtual void send(std::string_view kind, nlohmann::json body) = 0;

 protected:
  RecordSink() = default;
  RecordSink(const RecordSink&) = default;
  RecordSink(RecordSink&&) = default;
  RecordSink& operator=(const RecordSink&) = default;
  RecordSink& operator=(RecordSink&&) = default;
};

}  // namespace sweep::agent
