// The readers of a grid file's sections. Together they make one pass over a Document into a GridSpec in which
// everything is known to be right; each refuses what is wrong with its place. read.cpp calls them in the
// order that their REQUIRES ask for. Used once.
#pragma once
#include <functional>
#include <map>
#include <set>

#include "orchestrator/grid/read_values.h"

namespace sweep::grid {

inline constexpr std::size_t kMaxClauses = 256;   // limit of `where`, and of `derive`
inline constexpr std::size_t kMaxItems = 10'000;  // limit of `include`, and of `exclude`

// The state that the readers share: the file, and what is read of it so far.
struct Reading {
  const Document& document;
  GridSpec& spec;
  ValueReader values;

  const Entry* section(std::string_view key) const { return document.root().entry(key); }
};

// Sets what each point starts from.
void set_start(GridSpec&, const Dimension& one);

// model, base, grid and zip: the values of the axes. Each axis has one home: one of these sections, or
// derive.
class AxisSections {
 public:
  explicit AxisSections(Reading& in) : in_(in) {}
  // REQUIRES: ExpressionSections::add_labels().
  Status read_base();
  Status read_wheels(const ReadOptions&);
  // Axes that nothing else of the file gives. REQUIRES: all other sections of axes are read.
  Status read_suggested();
  Status need_model() const;
  // A stage may change what base gives.
  Status claim_over_base(Slot slot, const Entry& entry, std::string_view section);

 private:
  Status model();
  Status base();
  Status axes();
  Status zips();
  Status count_points(const ReadOptions& options);
  Status claim(Slot slot, const Entry& entry, std::string_view section);
  using TakeAxis = std::function<Status(const Entry& item, Slot)>;
  // Every axis of a section that is a map, in order.
  Status each(std::string_view section, const TakeAxis&);
  Expected<Dimension> axis(const Entry& item, Slot slot, std::string_view section);
  bool is_auto_sizes(const Entry& item, Slot slot) const;
  Status add_auto_sizes(const Entry& item, Slot slot, std::string_view section);
  void complete_auto_sizes();
  std::string factors() const;

  Reading& in_;
  std::map<Slot, std::string> homes_;
};

// stages: a series of trials, each with one change more than the one before. One wheel, the outermost.
class StageSection {
 public:
  StageSection(Reading& in, AxisSections& axes) : in_(in), axes_(axes) {}
  // The label that says which stage a trial is, before anything refers to it.
  Status add_label();
  // REQUIRES: base is read, grid and zip are not.
  Status read();

 private:
  Expected<const Entry*> named(const Node& item);
  Status stage(const Entry& entry);
  Status change(const Entry& item);

  Reading& in_;
  AxisSections& axes_;
  std::set<Slot> changed_;
  std::vector<Point> points_;  // one for each stage
  Point now_;                  // the point with the changes so far
  Dimension all_;
};

// derive and where, and the order in which a point takes the steps that follow from them.
class ExpressionSections {
 public:
  explicit ExpressionSections(Reading& in) : in_(in) {}
  // Names that `derive` sets, before anything refers to them.
  Status add_labels();
  // Orders first, then compiles in that order, so that a name's type is known where it is used. REQUIRES: all
  // axes are read.
  Status derive();
  Status where();
  // REQUIRES: derive(), PointSections::included().
  Status order_included();

 private:
  Status compile_derived(Derived& derived, const Node& node);
  // An optional axis that nothing sets has no value anywhere: a mistake, not a condition.
  Status check_reads(const Expression& code, const Node& node) const;
  tl::unexpected<Error> refuse_expression(const Node& node, const ExpressionError& error) const;
  tl::unexpected<Error> refuse_cycle(const Cycle& cycle) const;

  Reading& in_;
};

// include and exclude: single points.
class PointSections {
 public:
  explicit PointSections(Reading& in) : in_(in) {}
  Status included();
  Status exclude();

 private:
  Status include_axis(const Entry& axis, Included& point);
  Expected<Exclusion::Match> exclude_axis(const Entry& axis);
  Expected<Exclusion::Match> exclude_models(const Entry& axis, Exclusion::Match match);

  Reading& in_;
};

}  // namespace sweep::grid
