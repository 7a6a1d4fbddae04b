// Reader: one pass over a Document into a GridSpec in which everything is known to be right. One method per
// section of the file; each refuses what is wrong with its place. Used once.
#pragma once
#include <map>
#include <span>

#include "orchestrator/grid/read_values.h"

namespace sweep::grid {

inline constexpr std::size_t kMaxClauses = 256;   // of where, of derive
inline constexpr std::size_t kMaxItems = 10'000;  // of include, of exclude

class Reader {
 public:
  Reader(const Document& document, Grid& grid, GridSpec& spec)
      : document_(document),
        root_(document.root()),
        grid_(grid),
        spec_(spec),
        values_(document, spec, grid.path.parent_path()) {}

  Status run(const ReadOptions& options);

 private:
  tl::unexpected<Error> refuse(Place at, std::string_view message) const;
  const Entry* section(std::string_view key) const { return root_.entry(key); }
  Status header();

  // Every slot at its default; none given.
  void defaults();
  template <class T>
  void set_default(Slot slot, const T& value) {
    Cell& cell = spec_.start.cells[slot];
    if constexpr (AxisChoice<T>) {
      cell.i = spec_.scope.words.id(to_string(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      cell.i = spec_.scope.words.id(value);
    } else if constexpr (std::is_same_v<T, double>) {
      cell.r = value;
    } else if constexpr (std::is_same_v<T, std::optional<i64>>) {
      cell.i = value.value_or(0);
      if (!value) spec_.start.held[slot] = Presence::kAbsent;
    } else {
      cell.i = value;
    }
  }

  // The command that trials run instead of the step, and the axes that it brings.
  Status workload(const ReadOptions&);
  Status own_presets();
  // Names that `derive` sets, before anything refers to them.
  Status add_labels();
  Status grow();

  // Each axis has one home: base, grid, zip or derive.
  Status claim(Slot slot, const Entry& entry, std::string_view section);
  void set_start(const Dimension& one);
  Status model();
  Status base();
  Expected<Dimension> axis(const Entry& item, std::string_view section);
  Status axes();
  Status zips();
  std::string factors() const;
  Status count_points(const ReadOptions& options);
  Status included();

  // What an included point starts from: base and derive, not the grid's axes.
  std::vector<bool> base_given() const;
  Status include_axis(const Entry& axis, Included& point);

  // Now that every model and hardware is known: what expressions may compare with, and the catalogue's GPUs
  // per node.
  void name_models();
  tl::unexpected<Error> refuse_expression(const Node& node, const ExpressionError& error) const;

  // Orders first, then compiles in that order, so that a name's type is known where it is used.
  Status derive();
  tl::unexpected<Error> refuse_cycle(const Cycle& cycle) const;
  Status compile_derived(Derived& derived, const Node& node);

  // An optional axis that nothing sets has no value anywhere: a slip, not a condition.
  Status check_reads(const Code& code, const Node& node) const;
  bool main_has_cpu() const;
  Status where();
  Status exclude();
  Expected<Exclusion::Match> exclude_axis(const Entry& axis);
  Expected<Exclusion::Match> exclude_models(const Entry& axis, Exclusion::Match match);
  Status order_included();

  const Document& document_;
  const Node& root_;
  Grid& grid_;
  GridSpec& spec_;
  ValueReader values_;
  std::map<Slot, std::string> homes_;
};

}  // namespace sweep::grid
