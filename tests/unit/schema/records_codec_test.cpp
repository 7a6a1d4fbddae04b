// Every record of schema/records.def as JSON and as text: nothing is lost, and nothing hostile is taken.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "tests/support/filled_records.h"

namespace sweep {
namespace {

using nlohmann::json;

// Calls f(Of<Record>) for each record of the table.
template <class F>
void for_each_record(F&& f) {
#define RECORD(Name, words) f(Of<Name>());
#define RECORD_OF(Name, Base, words) RECORD(Name, words)
#define FIELD(type, member, value, place)
#define RECORD_END(Name)
#include "schema/records.def"
#include "tests/support/error_matchers.h"
#undef RECORD
#undef RECORD_OF
#undef FIELD
#undef RECORD_END
}

TEST(RecordsCodec, EveryFieldComesBackAsItWasWritten) {
  for_each_record([]<class T>(Of<T>) {
    const T filled = sweep::filled::Filler().filled<T>();
    const auto back = must(from_text<T>(to_text(filled)));
    EXPECT_TRUE(back == filled) << to_text(back) << "\n" << to_text(filled);
    const auto empty = must(from_text<T>(to_text(T())));
    EXPECT_TRUE(empty == T()) << to_text(empty);
  });
}

TEST(RecordsCodec, KeysOfANewerWriterAreIgnoredAndAbsentOnesTakeTheDefault) {
  for_each_record([]<class T>(Of<T>) {
    const T filled = sweep::filled::Filler().filled<T>();
    json newer = to_json(filled);
    newer["a key of a later version"] = {1, {{"x", nullptr}}};
    ASSERT_TRUE(from_json<T>(newer));
    EXPECT_TRUE(*from_json<T>(newer) == filled);
    ASSERT_TRUE(from_text<T>("{}"));
    EXPECT_TRUE(*from_text<T>("{}") == T());
  });
}

// Each field is replaced by values of a wrong type or size; the records inside of records have their own turn.
TEST(RecordsCodec, HostileValuesAreAnErrorAndNeverAFault) {
  const json hostile[] = {nullptr,
                          true,
                          -1,
                          1e300,
                          "x",
                          std::numeric_limits<std::uint64_t>::max(),
                          json::array({json::object(), 1}),
                          json::object({{"rank", "x"}})};
  for_each_record([&]<class T>(Of<T>) {
    const json whole = to_json(sweep::filled::Filler().filled<T>());
    std::size_t refused = 0;
    for (const auto& [key, value] : whole.items())
      for (const json& other : hostile) {
        json changed = whole;
        changed[key] = other;
        const auto read = from_json<T>(changed);
        if (read) continue;
        ++refused;
        EXPECT_NE(read.error().message.find(key), std::string::npos) << "it names the key";
      }
    EXPECT_GT(refused, 2 * whole.size()) << "most of them are no values of the field";
    for (const json& other : hostile) EXPECT_TRUE(other.is_object() || !from_json<T>(other));
  });
}

TEST(RecordsCodec, TextThatIsNoRecordIsAnError) {
  const std::string deep(10'000, '['), huge = R"({"rank": 1)" + std::string(400, '0') + "}";
  for_each_record([&]<class T>(Of<T>) {
    for (const std::string& text : {std::string(), std::string("null"), std::string("[]"), std::string("{"),
                                    std::string("{\"a\":"), deep, huge})
      EXPECT_FALSE(from_text<T>(text)) << text.substr(0, 40);
  });
}

TEST(RecordsCodec, ARecorderThatWasAskedAndDidNotAnswerIsNull) {
  RankPosition silent;
  silent.flight.asked = true;
  EXPECT_TRUE(to_json(silent).at("flight").is_null());
  EXPECT_FALSE(to_json(RankPosition()).contains("flight"));
  EXPECT_TRUE(*from_json<RankPosition>(to_json(silent)) == silent);
}

// The words in which databases hold them; a changed one would leave stored text unread.
TEST(RecordsCodec, TheKeysOfStoredTextStay) {
  Evidence evidence;
  evidence.reported = {2, 1}, evidence.cleanup_failure = "left";
  EXPECT_EQ(to_text(evidence), R"({"cleanup_failure":"left","phase":"","reported":{"exits":1,"records":2}})");
  NodeFacts facts;
  facts.cores = 4, facts.screen = NodeScreen{1, 2, {{3, 0.5}}, ""};
  EXPECT_EQ(to_text(facts),
            R"({"cores":4,"screen":{"links_gb_s":[[3,0.5]],"matmul_gflops":1.0,"memory_gb_s":2.0}})");
}

}  // namespace
}  // namespace sweep
