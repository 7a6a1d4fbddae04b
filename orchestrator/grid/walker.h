// Walker: turns the odometer of one program (the grid's, or an included point's) and hands each combination
// on. Steps and clauses run at the outermost wheel that settles what they read, so a clause that is false
// drops all points below it at once; a point that is dropped and not listed never becomes a Trial.
#pragma once
#include <functional>
#include <unordered_set>

#include "orchestrator/grid/spec.h"

namespace sweep::grid {

// The state that all walks of one expansion share.
struct Expansion {
  const Grid& grid;
  const std::function<bool(PlanEntry&&)>& sink;
  std::uint64_t list_dropped = 0;  // still to be listed
  ExpandCounts counts;
  std::unordered_set<std::uint64_t> seen;   // trial ids, their 64 bits
  std::unordered_set<std::uint64_t> drops;  // ids that were listed as dropped and not run
};

class Walker {
 public:
  struct Setup {
    const Program& program;
    const std::vector<bool>& given;
    const std::vector<Dimension>& dimensions;  // none: a single point
    Point start;
    bool filtered = true;  // `where` and `exclude` apply
    Place source;
  };
  Walker(Expansion&, const Setup&);

  // False: the sink stopped it.
  Expected<bool> run();

 private:
  static constexpr int kNone = -1;
  enum class Flow { kGoOn, kStop };  // stop: the sink said so, or error_ is set

  struct Stage {  // after so many wheels are set
    std::vector<std::uint16_t> steps, clauses;
    std::uint64_t below = 1;  // points under one setting
    int troubles = 0;         // steps and clauses without a value, up to here
  };

  void plan_stages();
  Flow walk(std::size_t stage, int dropped);
  bool settle(std::size_t stage, int& dropped);
  bool run_steps(Stage&);
  bool run_clauses(Stage&, int& dropped);
  Flow leaf(int dropped);
  const Exclusion* excluded() const;
  bool is_spare_size(const Reason&) const;
  Flow emit(bool admitted, Reason reason, std::uint64_t& count);
  Reason why_dropped(int clause) const;
  Reason why_excluded(const Exclusion&) const;
  Reason why_pruned() const;
  // unsupported: why the program of the workload cannot run it; empty: it can.
  Trial trial(std::string& unsupported) const;
  std::string labels() const;
  std::string at(Place) const;
  Error overflow(Place, const std::string& subject, const std::string& why) const;

  Expansion& expansion_;
  const GridSpec& spec_;
  const Setup& setup_;
  AlgebraSlots slots_;
  Point point_;
  const std::string source_;  // PlanEntry::source of its trials
  std::vector<Stage> stages_;
  std::vector<Failure> step_failures_, clause_failures_;  // trouble kNone and not failed: fine
  std::vector<bool> step_failed_, clause_failed_;
  std::optional<Error> error_;
};

}  // namespace sweep::grid
