// CsvReader: the rows of one CSV text (RFC 4180: commas, fields quoted with ", line ends LF or CRLF), each
// with the line it begins on. Home of libcsv. It refuses text that is not UTF-8, broken quoting and oversized
// rows. What a column means is decided elsewhere.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace sweep::imports {

struct CsvRow {
  std::size_t line = 0;  // counted from 1
  std::vector<std::string> cells;
};

inline constexpr std::size_t kMostCells = 4096;           // limit of a row
inline constexpr std::size_t kMostCellBytes = 1u << 20u;  // limit of a cell

class CsvReader {
 public:
  // The text must outlive the reader. Error: not UTF-8, or a NUL byte. A byte order mark is skipped.
  static Expected<CsvReader> open(std::string_view text, std::string shown_as);
  CsvReader(CsvReader&&) noexcept;
  ~CsvReader();
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  // The next row that is not blank; nullopt: no more. After an error there is no more.
  Expected<std::optional<CsvRow>> next();

 private:
  struct Parser;
  CsvReader(std::string_view text, std::string shown_as);
  Expected<void> feed();

  std::string_view rest_;
  std::string shown_as_;
  std::unique_ptr<Parser> parser_;
};

// "results.csv:12: " before the cause of an error.
std::string place(const std::string& shown_as, std::size_t line);
// The error with its place, before the cause and as fields.
tl::unexpected<Error> fail_at(const std::string& shown_as, std::size_t line, const Error& cause);
using TakeRow = std::function<Expected<void>(CsvRow)>;
// Gives the first row, which names the columns, to `header`, and each further one to `row`, with as many cells. Error:
// the file is empty, a row has another length, there are more than 10 million, or the error of `row`, with its place.
Expected<void> read_rows(std::string_view text, const std::string& shown_as, const TakeRow& header,
                         const TakeRow& row);
// The error of a cell, told as one of its column.
Error in_column(const std::string& column, const Error& cause);

}  // namespace sweep::imports
