// ProgressWriter: this rank's end of its heartbeat page (schema/progress.h). It maps the page the agent made,
// or a private one when there is none (a rank started by hand); it decides nothing.
#pragma once
#include <string>

#include "schema/progress.h"

namespace sweep {

class ProgressWriter {
 public:
  explicit ProgressWriter(const std::string& path);
  ~ProgressWriter();
  ProgressWriter(const ProgressWriter&) = delete;
  ProgressWriter& operator=(const ProgressWriter&) = delete;

  void phase(Phase);
  void part(Part);
  void begin_step();  // one more step, warm-up included
  Phase current() const { return static_cast<Phase>(page_->phase.load(std::memory_order_relaxed)); }
  Part part() const { return static_cast<Part>(page_->part.load(std::memory_order_relaxed)); }
  ProgressPage* page() { return page_; }

 private:
  ProgressPage* page_ = nullptr;
};

}  // namespace sweep
