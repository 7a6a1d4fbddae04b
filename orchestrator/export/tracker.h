// Tracker: a place that takes finished trials one at a time. Its ids are computed from the result, so that
// sending the same run twice leaves one.
#pragma once
#include <optional>
#include <string>

#include "orchestrator/export/retrying_client.h"
#include "orchestrator/export/tracker_run.h"

namespace sweep::exports {

// The receipt for something that was delivered in full.
struct Receipt {
  std::string remote;  // how the server calls it
  std::string digest;  // digest of what was sent
};

// The sweep as a whole, for trackers that keep something for it.
struct TrackerSweep {
  std::string id;  // 16 hexadecimal digits
  std::string name, question, grid_text, results_csv;
  double created_unix_s = 0, ended_unix_s = 0;
};

class Tracker {
 public:
  virtual ~Tracker() = default;
  virtual std::string place() const = 0;  // server, project: what receipts belong to
  virtual std::string digest(const TrackerRun&) const = 0;
  virtual std::string digest(const TrackerSweep&) const = 0;
  // Before the first run; the receipt of an earlier export, if any.
  virtual Delivered<void> open(const TrackerSweep&, const std::optional<Receipt>&) = 0;
  // `before`: delivered already, with other values. The answer is how the server calls the run.
  virtual Delivered<std::string> deliver(const TrackerRun&, const std::optional<Receipt>& before) = 0;
  // After the last run; how the server calls the sweep.
  virtual Delivered<std::string> close(const TrackerSweep&) = 0;
};

}  // namespace sweep::exports
