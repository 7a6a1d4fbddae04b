// Rows: tables of a workload whose values depend on the trial. A row has a key (a flag, a variable, a path in
// a file) and cases; the first case that holds gives its value. Reading refuses unknown names and wrong types
// with their place.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/grid/document.h"
#include "orchestrator/grid/expression.h"
#include "orchestrator/grid/scope.h"

namespace sweep::grid {

using DocumentPtr = std::shared_ptr<const Document>;

inline constexpr std::size_t kMaxRows = 1000;  // limit of a table
inline constexpr std::size_t kMaxCases = 100;  // limit of a row
inline constexpr std::size_t kLongestText = 64u << 10;

// A case as the file has it.
struct CaseText {
  DocumentPtr document;
  Place place;
  NodePtr when;   // null: always
  NodePtr value;  // null: the row has no value (a flag alone)
  std::optional<std::vector<std::string>>
      of;  // axes, one of which the grid must give; nullopt: those that the case reads
};
struct RowText {
  std::string key;
  std::vector<CaseText> cases;
};
using TableText = std::vector<RowText>;

// {key: TEXT, key: {when: CONDITION, value: TEXT, of: [AXES]}, key: [CASES]}; a key with null is a row that
// never holds.
Expected<TableText> read_table(const DocumentPtr&, const Entry&);
// [{when: CONDITION, why: TEXT, of: [AXES]}]: sentences.
Expected<std::vector<CaseText>> read_sentences(const DocumentPtr&, const Entry&);
// Rows of `over` take the place of rows with the same key.
void overlay(TableText& table, TableText over);

// A case, checked.
struct Case {
  std::optional<Expression> when;
  std::optional<std::string> text;  // a template
  std::optional<Expression> value;  // value of a derived name
  bool of_any = true;               // it holds whatever the grid gives
  bool of_sweep = false;            // no axis decides it: how the sweep runs the program
  std::vector<Slot> of;
};
struct Row {
  std::string key;
  std::vector<Case> cases;
  Slot slot = 0;  // slot of a derived name
};

// True for a name that a rank fills in later: it stays in braces.
bool is_rank_name(std::string_view name);

// Checks tables against a scope, and adds the names that they derive to it.
class RowBinder {
 public:
  // reads: the axes that names of the scope follow from; a name that is not listed stands for itself.
  RowBinder(Scope& scope, std::map<Slot, std::set<Slot>> reads) : scope_(scope), reads_(std::move(reads)) {}

  Expected<std::vector<Row>> table(const TableText&);
  // Reads rows of expressions; each key becomes a name that later rows may read.
  Expected<std::vector<Row>> derived(const TableText&);
  Expected<std::vector<Case>> sentences(const std::vector<CaseText>&);
  // The names in a template: each must be known. Error: the message alone.
  Expected<std::vector<std::string>> names_of(std::string_view text) const;
  // The same of a text that no condition decides: the axes in it are in use.
  Expected<std::vector<std::string>> use(std::string_view text);
  // The slots that rows, sentences and texts read so far; of a derived name the axes behind it.
  const std::set<Slot>& used() const { return used_; }

 private:
  Expected<Case> bind(const CaseText&);
  Expected<Expression> compiled(const CaseText&, const Node&);
  Status add_axes(const CaseText&, const std::set<Slot>& read, Case&) const;
  void trace(Slot, std::set<Slot>& axes) const;

  Scope& scope_;
  std::map<Slot, std::set<Slot>> reads_;
  std::set<Slot> used_;
};

// The rows of one trial.
class RowValues {
 public:
  // given: the slots that the grid sets; null: all count as given, and rows about how the sweep runs the
  // program are left out. The point has a cell for each slot of the scope.
  RowValues(const Scope& scope, Point point, const std::vector<bool>* given)
      : scope_(scope), point_(std::move(point)), given_(given) {}
  using Spelling = std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>>;
  void spell(const Spelling* spelling) { spelling_ = spelling; }

  void derive(const std::vector<Row>&);
  bool holds(const Case&) const;
  // The first case that holds, and its text; none: the row is left out.
  const Case* chosen(const Row&) const;
  // A template with all values in their places; rank names stay in it. None: it names what has no value in
  // this trial.
  std::optional<std::string> filled(std::string_view text) const;
  // Does the same as filled(), but a name without a value is empty.
  std::string lenient(std::string_view text) const;

 private:
  std::optional<std::string> value_of(std::string_view name) const;

  const Scope& scope_;
  Point point_;
  const std::vector<bool>* given_;
  const Spelling* spelling_ = nullptr;
};

// A value as a program reads it: words without quotes, numbers with all their digits.
std::string plain_text(Cell, Type, const Words&);

}  // namespace sweep::grid
