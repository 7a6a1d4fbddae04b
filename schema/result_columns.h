// ResultColumns: some columns of many results, each column in one piece, for answers that look at every
// result but at few of its values. A CodedColumn holds each distinct value once. It names rows by their plan
// entry; whoever needs one in full asks for it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schema/result_row.h"

namespace sweep {

struct CodedColumn {
  std::vector<Value> values;      // distinct, in order of their first row; each is some row's
  std::vector<std::uint32_t> of;  // each row's place among `values`

  std::uint32_t code_of(const Value&);  // added when it is new
  void append(const Value& value) { of.push_back(code_of(value)); }
  const Value& at(std::size_t row) const { return values[of[row]]; }

 private:
  std::unordered_map<Value, std::uint32_t> codes_;
};

// Names of schema/columns.h.
struct ColumnSelection {
  std::vector<std::string> coded, numbers;
};

struct ResultColumns {
  std::vector<i64> entry;               // the entry of each row
  std::vector<std::string_view> trial;  // the id of each row
  std::map<std::string, CodedColumn, std::less<>> coded;
  std::map<std::string, std::vector<double>, std::less<>> numbers;  // NaN: not measured
  std::vector<std::shared_ptr<const std::string>> held;             // the texts that `trial` points into

  std::size_t size() const { return entry.size(); }
  // Every selected column, empty; a name that is no column is left out.
  static ResultColumns empty(const ColumnSelection&);
  void append(std::span<const ResultRow>, std::span<const i64> entries);
};

}  // namespace sweep
