#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "orchestrator/export/results.h"
#include "schema/codec.h"
#include "schema/columns.h"

namespace sweep::exports {
namespace {

ResultRow sample() {
  ResultRow row;
  row.sweep = "quickstart";
  row.trial_id = "00ff";
  row.trial.model = "tiny, \"llama\"";
  row.trial.dp = 2;
  row.trial.packing = true;
  row.outcome = Outcome::kOk;
  row.metrics.step_ms = 0.1 + 0.2;
  row.metrics.mfu = std::numeric_limits<double>::quiet_NaN();
  row.metrics.timed_steps = 10;
  row.attempts = 1;
  row.finished_unix_ns = 1'700'000'000'123'456'789;
  return row;
}

std::string csv(std::vector<ResultRow> rows, CsvOptions options = {}) {
  std::ostringstream out;
  EXPECT_TRUE(write_csv(out, rows_of(rows), options));
  return out.str();
}

// One record of RFC 4180 from `at` on.
std::vector<std::string> record(const std::string& text, std::size_t& at) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '"' && at + 1 < text.size() && text[at + 1] == '"') {
      fields.back() += text[++at];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      fields.emplace_back();
    } else if (!quoted && c == '\r') {
      at += 2;
      return fields;
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::string field(const std::string& text, std::string_view key) {
  std::size_t at = 0;
  const auto head = record(text, at), row = record(text, at);
  const auto it = std::find(head.begin(), head.end(), key);
  return it == head.end() ? "(no such column)" : row.at(static_cast<std::size_t>(it - head.begin()));
}

TEST(Csv, HasEveryColumnOfTheTableInItsOrder) {
  std::size_t at = 0;
  const std::string text = csv({sample()});
  auto head = record(text, at);
  const auto row = record(text, at);
  EXPECT_EQ(row.size(), head.size());
  EXPECT_EQ(std::erase(head, "model_dimensions"), 1u);
  ASSERT_EQ(head.size(), columns().size());
  for (std::size_t i = 0; i < head.size(); ++i) EXPECT_EQ(head[i], columns()[i].key);
  EXPECT_EQ(at, text.size());
  std::size_t fields = 0;
#define AXIS(type, key, def, domain, unit, title, sentence) ++fields;
#define CHOICE(...) ++fields;
#define METRIC(...) ++fields;
#include "schema/fields.def"
#include "tests/support/must.h"
#undef AXIS
#undef CHOICE
#undef METRIC
  EXPECT_GE(head.size(), fields + 5);
}

TEST(Csv, AModelsDimensionsStandBesideItsName) {
  ResultRow row = sample();
  EXPECT_EQ(field(csv({row}), "model_dimensions"), "");
  row.trial.spec.layers = 7;
  const auto parsed = must(parse_json(field(csv({row}), "model_dimensions")));
  EXPECT_EQ(from_json<ModelSpec>(parsed), row.trial.spec);
}

TEST(Csv, NotMeasuredIsEmptyAndNanNeverAppears) {
  const std::string text = csv({sample()});
  EXPECT_EQ(field(text, "mfu"), "");
  EXPECT_EQ(field(text, "cost_per_mt"), "");
  EXPECT_EQ(field(text, "memory_cap_bytes"), "");
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(field(text, "packing"), "true");
  EXPECT_EQ(field(text, "finished_at"), "2023-11-14T22:13:20.123Z");
}

TEST(Csv, ATrialThatHasNotFinishedHasNoOutcome) {
  ResultRow row = sample();
  row.state = State::kPending;
  const std::string text = csv({row});
  EXPECT_EQ(field(text, "state"), "pending");
  EXPECT_EQ(field(text, "outcome"), "");
}

TEST(Csv, DoublesReadBackToTheSameValue) {
  for (const double value : {0.1 + 0.2, 1e-310, 1.7976931348623157e308, -0.0, 12345.678, 1.0 / 3}) {
    ResultRow row = sample();
    row.metrics.step_ms = value;
    const std::string text = field(csv({row}), "step_ms");
    double back = 7;
    std::from_chars(text.data(), text.data() + text.size(), back);
    EXPECT_EQ(std::signbit(back), std::signbit(value));
    EXPECT_EQ(back, value) << text;
  }
}

TEST(Csv, HostileTextStaysInItsField) {
  for (const std::string hostile : {"a,b", "say \"hi\"", "two\r\nlines", " padded ", "\"", ",,,\n"}) {
    ResultRow row = sample();
    row.reason = hostile;
    EXPECT_EQ(field(csv({row}), "reason"), hostile);
  }
}

TEST(Csv, FormulasAreDefusedAndNumbersAreNot) {
  ResultRow row = sample();
  for (const std::string formula :
       {"=HYPERLINK(\"x\")", "+cmd|' /C calc'!A0", "@SUM(1)", "-2+3", "\t=1", "'=1"}) {
    row.reason = formula;
    EXPECT_EQ(field(csv({row}), "reason"), "'" + formula);
    EXPECT_EQ(field(csv({row}, {.raw_text = true}), "reason"), formula);
  }
  row.reason = "-1.5e3";
  EXPECT_EQ(field(csv({row}), "reason"), "-1.5e3");
}

TEST(Csv, LinesEndAsTheReaderExpects) {
  const std::string rfc = csv({sample()}), unix_text = csv({sample()}, {.line_end = "\n"});
  EXPECT_TRUE(rfc.ends_with("\r\n"));
  EXPECT_TRUE(unix_text.ends_with("\n"));
  EXPECT_EQ(std::ranges::count(unix_text, '\r'), 0);
}

TEST(Csv, InvalidUtf8BecomesTheReplacementCharacter) {
  ResultRow row = sample();
  row.reason = std::string("bad \xff\xfe and \0 nul", 17);
  const std::string text = field(csv({row}), "reason");
  EXPECT_EQ(text.find('\xff'), std::string::npos);
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_NE(text.find("\xEF\xBF\xBD"), std::string::npos);
}

// Fails after some bytes, as a full disk does.
class FullDisk : public std::streambuf {
 public:
  explicit FullDisk(std::streamsize room) : room_(room) {}

 protected:
  std::streamsize xsputn(const char*, std::streamsize n) override { return n <= room_ ? room_ -= n, n : 0; }
  int overflow(int) override { return traits_type::eof(); }

 private:
  std::streamsize room_;
};

TEST(Export, AFullDiskIsReported) {
  const std::vector<ResultRow> rows(100, sample());
  for (const std::streamsize room : {0, 10, 5000}) {
    FullDisk a(room), b(room), c(room);
    std::ostream first(&a), second(&b), third(&c);
    EXPECT_FALSE(write_csv(first, rows_of(rows)));
    EXPECT_FALSE(write_json(second, rows_of(rows)));
    EXPECT_FALSE(write_json_lines(third, rows_of(rows)));
  }
}

TEST(Json, HoldsTheSameValuesWithNullsAndFlags) {
  std::ostringstream out;
  std::vector<ResultRow> rows = {sample(), sample()};
  rows[1].trial.labels = R"({"stage":"a"})";
  ASSERT_TRUE(write_json(out, rows_of(rows)));
  const auto json = nlohmann::json::parse(out.str());
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["step_ms"].get<double>(), 0.1 + 0.2);
  EXPECT_TRUE(json[0]["mfu"].is_null());
  EXPECT_EQ(json[0]["packing"], true);
  EXPECT_EQ(json[0]["model"], "tiny, \"llama\"");
  EXPECT_TRUE(json[0]["labels"].is_null());
  EXPECT_EQ(json[1]["labels"]["stage"], "a");
  for (const Column& c : columns()) EXPECT_TRUE(json[0].contains(std::string(c.key))) << c.key;
}

TEST(Json, NoRowsAreAnEmptyArray) {
  std::ostringstream out;
  ASSERT_TRUE(write_json(out, rows_of({})));
  EXPECT_EQ(nlohmann::json::parse(out.str()), nlohmann::json::array());
}

TEST(Json, LinesAreOneValidObjectEachWhateverTheTextHolds) {
  ResultRow row = sample();
  row.reason = "line\nbreak \xff </script>";
  row.trial.labels = "{broken";
  std::ostringstream out;
  const std::vector<ResultRow> rows(3, row);
  ASSERT_TRUE(write_json_lines(out, rows_of(rows)));
  std::istringstream in(out.str());
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines)
    EXPECT_TRUE(nlohmann::json::parse(line).is_object());
  EXPECT_EQ(lines, 3);
}

TEST(Export, TablesOfAQueryAreWrittenToo) {
  const Table table{{"a", "b c"}, {{Value{i64{1}}, Value{std::string("x,y")}}, {Value{}, Value{0.5}}}};
  std::ostringstream text, json;
  ASSERT_TRUE(write_csv(text, table));
  EXPECT_EQ(text.str(), "a,b c\r\n1,\"x,y\"\r\n,0.5\r\n");
  ASSERT_TRUE(write_json(json, table));
  EXPECT_EQ(nlohmann::json::parse(json.str()),
            nlohmann::json::parse(R"([{"a":1,"b c":"x,y"},{"a":null,"b c":0.5}])"));
}

}  // namespace
}  // namespace sweep::exports
