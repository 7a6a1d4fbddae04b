// Every record of schema/records.def as JSON and as text: nothing is lost, and nothing hostile is taken.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "tests/support/error_matchers.h"
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
    bool needs_a_member = false;
    for_each_member(Of<T>(), [&](const auto& field, auto) { needs_a_member |= field.is_needed; });
    const auto empty = from_text<T>("{}");
    EXPECT_EQ(!empty, needs_a_member);
    EXPECT_TRUE(!empty || *empty == T());
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

// Programs of two versions read them of each other, as far as the version.
TEST(RecordsCodec, TheWordsBetweenProgramsStay) {
  NodeProbe probe{NodeFacts{.cores = 4, .version = "1"}};
  probe.host = "n1", probe.paths = {{"/f", "writable"}}, probe.shm_bytes = 7, probe.unix_ns = 8;
  EXPECT_EQ(to_text(probe),
            R"({"cores":4,"host":"n1","paths":{"/f":"writable"},"shm_bytes":7,"unix_ns":8,"version":"1"})");
  EXPECT_EQ(
      to_text(RankFacts{"1", "b", "2.11.0", "13.0", {"9.0"}, true}),
      R"({"archs":["9.0"],"build":"b","cuda":"13.0","gpu_plugin":true,"libtorch":"2.11.0","version":"1"})");
  EXPECT_EQ(to_text(AgentHello{4, "n1", "1", 2, true}),
            R"({"host":"n1","nodes":2,"pid":4,"pid_namespace":true,"version":"1"})");
  EXPECT_EQ(
      to_text(NodeJoin{{"c", "p", 1, "1"}, {NodeRecord{1, "n1", {}}}}),
      R"({"challenge":"c","hello":{"record":{"facts":{},"host":"n1","node":1}},"node":1,"proof":"p","version":"1"})");
  EXPECT_EQ(to_text(JoinLine{"10.0.0.1", 5, "t", 1}),
            R"({"address":"10.0.0.1","node":1,"port":5,"token":"t"})");
  AgentReady ready{{"10.0.0.1", 5, "t"}};
  EXPECT_EQ(to_text(ready), R"({"address":"10.0.0.1","port":5,"token":"t"})") << "what srun hands on";
  ready.ready = true, ready.version = "1", ready.pid = 4;
  EXPECT_EQ(to_text(ready),
            R"({"address":"10.0.0.1","pid":4,"port":5,"ready":true,"token":"t","version":"1"})");
  EXPECT_EQ(to_text(AttemptStarted{7, {11, 12}, 5}), R"({"attempt":7,"pids":[11,12],"unix_ns":5})");
  EXPECT_EQ(to_text(NodeOut{1, "w", true}), R"({"lost":true,"node":1,"why":"w"})");
  EXPECT_EQ(to_text(Leave{}), R"({"reason":""})");
  EXPECT_EQ(to_text(Finish{}), R"({"now":false})");
  EXPECT_EQ(to_text(ZygoteAnswer{.pid = 4}), R"({"pid":4})");
  EXPECT_EQ(
      to_text(CalibrationRequest{.group = "dp", .precisions = {"fp32"}}),
      R"({"group":"dp","item_s":0.05,"kernels":false,"largest_bytes":16777216,"machine":false,"precisions":["fp32"],"smallest_bytes":1024})");
}

}  // namespace
}  // namespace sweep
