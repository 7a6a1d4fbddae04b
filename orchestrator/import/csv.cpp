#include "orchestrator/import/csv.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <new>

#include "base/fail.h"
#include "base/utf8.h"
#include "orchestrator/import/cells.h"

namespace sweep::imports {
namespace {

constexpr std::size_t kMostRows = 10'000'000;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

Expected<void> check_text(std::string_view text, const std::string& shown_as) {
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = text[i] == '\0' ? 0 : decode_utf8(text, i).length;
    if (length == 0) {
      return fail_at(shown_as, line,
                     {fmt::format("{} (byte {:#04x}); save it as UTF-8, for example with `iconv -t UTF-8`",
                                  text[i] == '\0' ? "the file holds a NUL byte, as UTF-16 and binary files do"
                                                  : "the text is not UTF-8",
                                  static_cast<unsigned char>(text[i])),
                      ErrorKind::kInvalidValue});
    }
    line += text[i] == '\n';
    i += length;
  }
  return {};
}

}  // namespace

struct CsvReader::Parser {
  csv_parser state{};
  std::size_t line = 0;  // being read
  CsvRow row;            // being read
  std::deque<CsvRow> done;
  std::string refused;  // the error of a callback
  bool finished = false;

  Parser() {
    if (csv_init(&state, CSV_STRICT | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
    csv_set_space_func(&state, [](unsigned char) { return 0; });  // blanks belong to a field
    csv_set_blk_size(&state,
                     kMostCellBytes / 16);  // grown by 128 bytes, a long field is copied thousands of times
  }
  ~Parser() { csv_free(&state); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  static void on_cell(void* text, std::size_t length, void* self) {
    auto& p = *static_cast<Parser*>(self);
    if (length > kMostCellBytes)
      p.refused = fmt::format("a field has {} bytes; the most is {}", length, kMostCellBytes);
    else if (p.row.cells.size() >= kMostCells)
      p.refused = fmt::format("a row has more than {} fields", kMostCells);
    else if (p.refused.empty())
      p.row.cells.emplace_back(static_cast<const char*>(text), length);
  }
  static void on_row(int, void* self) {
    auto& p = *static_cast<Parser*>(self);
    p.done.push_back(std::move(p.row));
    p.row = {p.line, {}};
  }
};

std::string place(const std::string& shown_as, std::size_t line) {
  return fmt::format("{}:{}: ", shown_as, line);
}

tl::unexpected<Error> fail_at(const std::string& shown_as, std::size_t line, const Error& cause) {
  Error error = retold(cause, place(shown_as, line) + cause.message);
  error.file = shown_as;
  error.line = static_cast<int>(line);
  return tl::unexpected(std::move(error));
}

Error in_column(const std::string& column, const Error& cause) {
  return {fmt::format("column '{}': {}", column, cause.message), cause.kind, column};
}

CsvReader::CsvReader(std::string_view text, std::string shown_as)
    : rest_(text), shown_as_(std::move(shown_as)), parser_(std::make_unique<Parser>()) {}
CsvReader::CsvReader(CsvReader&&) noexcept = default;
CsvReader::~CsvReader() = default;

Expected<CsvReader> CsvReader::open(std::string_view text, std::string shown_as) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  SWEEP_TRY(check_text(text, shown_as));
  return CsvReader(text, std::move(shown_as));
}

// One line of the file, so that libcsv's callbacks happen on a known line.
Expected<void> CsvReader::feed() {
  Parser& p = *parser_;
  const auto stop = [&](std::size_t line, ErrorKind kind, const std::string& cause) {
    p.finished = true;
    return fail_at(shown_as_, line, {cause, kind});
  };
  if (rest_.empty()) {
    p.finished = true;
    if (csv_fini(&p.state, Parser::on_cell, Parser::on_row, &p) != 0)
      return stop(p.row.line, ErrorKind::kInvalidValue,
                  "a quoted field that begins in this row is never closed; end it with \"");
    return p.refused.empty() ? Expected<void>{} : stop(p.row.line, ErrorKind::kInvalidValue, p.refused);
  }
  const std::string_view chunk = rest_.substr(0, std::min(rest_.find('\n'), rest_.size() - 1) + 1);
  ++p.line;
  const bool between_rows = p.row.cells.empty() && p.state.pstate == 0;
  if (between_rows) p.row.line = p.line;
  const std::size_t read =
      csv_parse(&p.state, chunk.data(), chunk.size(), Parser::on_cell, Parser::on_row, &p);
  if (read != chunk.size()) {
    if (csv_error(&p.state) != CSV_EPARSE)
      return stop(p.line, ErrorKind::kInvalidValue, csv_strerror(csv_error(&p.state)));
    return stop(p.line, ErrorKind::kInvalidValue,
                fmt::format("a quote where none may stand, at byte {} of the line; write a field that "
                            "holds quotes as \"...\", each quote in it twice",
                            read));
  }
  if (!p.refused.empty()) return stop(p.row.line, ErrorKind::kInvalidValue, p.refused);
  if (csv_get_buffer_size(&p.state) > 2 * kMostCellBytes && p.state.entry_pos > kMostCellBytes)
    return stop(
        p.row.line, ErrorKind::kInvalidValue,
        fmt::format("a field of this row has more than {} bytes; is a quote missing?", kMostCellBytes));
  rest_.remove_prefix(chunk.size());
  return {};
}

Expected<std::optional<CsvRow>> CsvReader::next() {
  Parser& p = *parser_;
  while (p.done.empty() && !p.finished)
    if (auto fed = feed(); !fed) {
      p.done.clear();
      return tl::unexpected<Error>(fed.error());
    }
  if (p.done.empty()) return std::nullopt;
  CsvRow row = std::move(p.done.front());
  p.done.pop_front();
  return row;
}

Expected<void> read_rows(std::string_view text, const std::string& shown_as, const TakeRow& header,
                         const TakeRow& row) {
  SWEEP_GET(auto csv, CsvReader::open(text, shown_as));
  std::optional<std::size_t> columns;
  for (std::size_t rows = 0;; ++rows) {
    SWEEP_GET(auto read, csv.next());
    if (!read) break;
    CsvRow& cells = *read;
    if (!columns) {
      for (auto& name : cells.cells) name = std::string(trimmed(name));
      columns = cells.cells.size();
      SWEEP_TRY(header(std::move(cells)));
      continue;
    }
    const std::size_t line = cells.line;
    if (cells.cells.size() != *columns)
      return fail_at(
          shown_as, line,
          {fmt::format("{} fields, where the header names {}; a field that holds a comma needs quotes",
                       cells.cells.size(), *columns),
           ErrorKind::kInvalidValue});
    if (rows > kMostRows)
      return fail_at(shown_as, line,
                     {fmt::format("more than {} rows; split the file", kMostRows), ErrorKind::kInvalidValue});
    if (const auto done = row(std::move(cells)); !done) return fail_at(shown_as, line, done.error());
  }
  if (columns) return {};
  return fail(ErrorKind::kInvalidValue, "", "{}: the file is empty; its first row names the columns",
              shown_as);
}

}  // namespace sweep::imports
