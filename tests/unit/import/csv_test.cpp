#include "orchestrator/import/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expected.h"
#include "tests/support/error_matchers.h"

namespace sweep::imports {
namespace {

using ::testing::ElementsAre;

// Every row, or the sentence of the first error as the only cell of the last one.
std::vector<CsvRow> rows_of(std::string_view text) {
  std::vector<CsvRow> out;
  auto reader = CsvReader::open(text, "f.csv");
  if (!reader) return {{0, {reader.error().message}}};
  for (;;) {
    auto row = reader->next();
    if (!row) {
      out.push_back({0, {row.error().message}});
      return out;
    }
    if (!*row) return out;
    out.push_back(std::move(**row));
  }
}

Error error_of(std::string_view text) {
  auto reader = CsvReader::open(text, "f.csv");
  if (!reader) return reader.error();
  for (auto row = reader->next();; row = reader->next()) {
    if (!row) return row.error();
    EXPECT_TRUE(*row) << "no row was refused";
    if (!*row) return {};
  }
}

TEST(Csv, FieldsQuotesAndEmptyOnes) {
  const auto rows = rows_of("a,b,c\n\"x, \"\"y\"\"\",, blank \n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[0].cells, ElementsAre("a", "b", "c"));
  EXPECT_THAT(rows[1].cells, ElementsAre("x, \"y\"", "", " blank "));
}

TEST(Csv, LineEndsByteOrderMarkAndAMissingLastLineEnd) {
  const auto rows = rows_of(
      "\xef\xbb\xbf"
      "a,b\r\n1,2\r\n3,4");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[0].cells, ElementsAre("a", "b"));
  EXPECT_THAT(rows[2].cells, ElementsAre("3", "4"));
}

TEST(Csv, LinesAreCountedThroughBlankOnesAndQuotedLineEnds) {
  const auto rows = rows_of("a\n\n\"one\ntwo\"\nb\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].line, 3u);
  EXPECT_EQ(rows[1].cells[0], "one\ntwo");
  EXPECT_EQ(rows[2].line, 5u);
}

TEST(Csv, NothingAtAllHasNoRows) {
  EXPECT_TRUE(rows_of("").empty());
  EXPECT_TRUE(rows_of("\n\r\n").empty());
}

TEST(Csv, BrokenQuotesAreRefusedWithTheirLine) {
  EXPECT_THAT(error_of("a,b\n1,\"2\n3,4\n"), AllOf(At(2), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("a,b\n1,2\n3,x\"y\"\n"), AllOf(At(3), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("a\n\"b\"c\n"), AllOf(At(2), IsError(ErrorKind::kInvalidValue)));
}

TEST(Csv, WhatIsNoTextIsRefusedWithTheWayOut) {
  EXPECT_THAT(error_of(std::string_view("a,b\n1,\0\n", 8)), AllOf(At(2), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("a\nM\xfcnchen\n"), AllOf(At(2), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("\xff\xfe"
                       "a"),
              AllOf(At(1), IsError(ErrorKind::kInvalidValue)));
  EXPECT_EQ(rows_of("name\nGröße 模型 🙂\n")[1].cells[0], "Größe 模型 🙂");
}

TEST(Csv, RowsThatAreTooLargeAreRefused) {
  EXPECT_THAT(error_of("a\n" + std::string(kMostCells + 1, ',') + "\n"),
              AllOf(At(2), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(error_of("a\n" + std::string(kMostCellBytes + 1, 'x') + "\n"),
              AllOf(At(2), IsError(ErrorKind::kInvalidValue)));
  std::string endless = "a\n\"";
  for (int i = 0; i < 40; ++i) endless += std::string(100'000, 'x') + "\n";
  EXPECT_THAT(error_of(endless), AllOf(At(2), IsError(ErrorKind::kInvalidValue)));
}

}  // namespace
}  // namespace sweep::imports
