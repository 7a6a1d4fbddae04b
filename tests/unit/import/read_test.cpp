#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/expected.h"
#include "base/formula_guard.h"
#include "orchestrator/import/import.h"
#include "schema/codec.h"
#include "tests/support/error_matchers.h"

namespace sweep::imports {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::string_view kPlaybook =
    "model,nodes,dp,tp,pp,gas,mbs,gbs,zero,status,mfu_pct,tok_s_gpu,mem_gb\n";
// The fields that a file must have, in the tool's own names; seq_len and the rest are given by --set.
const std::vector<std::string> kBase = {"hardware=h100-sxm-80gb", "seq_len=4096", "precision=bf16"};

Options with(std::vector<std::string> map = {}, std::vector<std::string> set = kBase) {
  return {
      .shown_as = "f.csv", .map = std::move(map), .set = std::move(set), .models = {}, .leave_rest = false};
}
Imported must(std::string_view text, const Options& options = with()) {
  auto read = imports::read(text, options);
  if (!read) throw std::runtime_error(read.error().message);
  return std::move(*read);
}
Error refusal_of(std::string_view text, const Options& options = with()) {
  return error_in(imports::read(text, options));
}
std::string playbook(std::string_view row) {
  return std::string(kPlaybook) + std::string(row) + "\n";
}
const ImportedRow& only(const Imported& read) {
  EXPECT_EQ(read.rows.size(), 1u);
  return read.rows.front();
}

TEST(Import, TheShippedFileNeedsNoFlags) {
  std::ifstream in(std::string(SWEEP_SOURCE_DIR) + "/sweeps/data/playbook_h100_1B_8B.csv", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const Imported read = must(text, with({}, {}));
  ASSERT_EQ(read.rows.size(), 1631u);
  i64 ok = 0, unknown = 0;
  for (const auto& row : read.rows) {
    ok += row.result->outcome == Outcome::kOk, unknown += row.result->outcome == Outcome::kFailedUnknown;
    EXPECT_EQ(row.entry.trial.world(), row.entry.trial.nodes * 8);
    EXPECT_FALSE(row.result->metrics.mfu) << "ours is computed, never read";
  }
  EXPECT_EQ(ok, 1026);
  EXPECT_EQ(unknown, 605);
  EXPECT_THAT(read.notes, Contains(HasSubstr("seq_len=4096")));
  EXPECT_THAT(read.notes, Contains(HasSubstr("20 rows whose dp x micro_batch_size x grad_accum")));
}

TEST(Import, ARowBecomesATrialWithItsClaims) {
  const Imported read = must(playbook("8B,2,4,4,1,16,4,256,1,ok,43.9,7290,40.4"), with({}, {}));
  const auto& [entry, result] = only(read);
  const Trial& t = entry.trial;
  EXPECT_EQ(t.model, "8B");
  EXPECT_EQ(t.spec.layers, 32);
  EXPECT_EQ(std::tuple(t.nodes, t.gpus_per_node, t.dp, t.tp, t.pp, t.grad_accum, t.micro_batch_size, t.zero),
            std::tuple(2, 8, 4, 4, 1, 16, 4, 1));
  EXPECT_EQ(std::tuple(t.hardware, t.precision, t.seq_len, t.global_batch_size),
            std::tuple("h100-sxm-80gb", Precision::kBf16Master, 4096, 256));
  EXPECT_EQ(t.grad_dtype, GradDtype::kFp32) << "as the book's text says";
  EXPECT_DOUBLE_EQ(result->metrics.mfu_reported.value(), 0.439);
  EXPECT_DOUBLE_EQ(result->metrics.tokens_per_s_gpu.value(), 7290);
  EXPECT_EQ(result->metrics.memory_reported_bytes, 40'400'000'000);
  EXPECT_FALSE(result->metrics.peak_allocated_bytes) << "the file does not say which memory it means";
  EXPECT_EQ(entry.source, "f.csv:2");
}

TEST(Import, OwnWordsGoBeforeThoseOfTheKnownFile) {
  Options options = with({}, {"seq_len=2048"});
  options.models = {"8B=llama3-8b"};
  const Imported read = must(playbook("8B,1,8,1,1,32,1,256,0,ok,1,1,1"), options);
  EXPECT_EQ(only(read).entry.trial.seq_len, 2048);
  EXPECT_EQ(only(read).entry.trial.spec.kv_heads, 8);
}

TEST(Import, FailedIsUnknownAndKeepsNoRates) {
  const Imported read =
      must(playbook("1B,1,1,4,2,1,256,256,0,failed,,,\n1B,1,8,1,1,32,1,256,0,oom,3,12,70"), with({}, {}));
  ASSERT_EQ(read.rows.size(), 2u);
  EXPECT_EQ(read.rows[0].result->outcome, Outcome::kFailedUnknown);
  EXPECT_THAT(read.rows[0].result->reason, HasSubstr("says 'failed' and no more"));
  EXPECT_EQ(read.rows[1].result->outcome, Outcome::kOom);
  EXPECT_FALSE(read.rows[1].result->metrics.tokens_per_s_gpu);
  EXPECT_EQ(read.rows[1].result->metrics.memory_reported_bytes, 70'000'000'000);
}

TEST(Import, ARateOfNothingInARowThatEndedOkIsRefused) {
  const std::string head = "model,micro_batch_size,tokens_per_s_gpu,outcome\n";
  EXPECT_THAT(refusal_of(head + "llama3-8b,1,0,ok\n"),
              AllOf(At(2), IsError(ErrorKind::kInvalidValue, "tokens_per_s_gpu")));
  EXPECT_TRUE(imports::read(head + "llama3-8b,1,,ok\n", with()));
  EXPECT_TRUE(imports::read(head + "llama3-8b,1,0,oom\n", with()));
}

TEST(Import, NothingMeasuredIsAbsentHoweverItIsWritten) {
  for (const char* nothing : {"", "nan", "NaN", "NULL", "n/a", "-", " "}) {
    const Imported read =
        must(playbook(std::string("1B,1,8,1,1,32,1,256,0,ok,1,2,") + nothing), with({}, {}));
    EXPECT_FALSE(only(read).result->metrics.memory_reported_bytes) << nothing;
  }
}

TEST(Import, NoneIsAValueWhereTheAxisHasIt) {
  const Imported read = must("model,mbs,tok_s_gpu,fused_kernels,recompute,kind\nmy-net,4,10,none,None,na\n",
                             with({"kind=label:kind"}));
  EXPECT_EQ(only(read).entry.trial.fused_kernels, FusedKernels::kNone);
  EXPECT_EQ(only(read).entry.trial.labels, R"({"kind":"na"})") << "a label may have any word";
}

TEST(Import, ColumnsAreMappedByNameWithTheirUnit) {
  const Options options = with({"arch=model", "t=step_ms:s", "peak=peak_reserved_bytes:GiB",
                                "eff=mfu_reported:%", "run=label:run", "x=-"});
  const Imported read =
      must("arch,micro_batch_size,t,peak,eff,run,x\nmy-net,4,1.5,2,37.5,\"a, b\",?\n", options);
  const auto& [entry, result] = only(read);
  EXPECT_DOUBLE_EQ(result->metrics.step_ms.value(), 1500);
  EXPECT_EQ(result->metrics.peak_reserved_bytes, i64{2} << 30);
  EXPECT_DOUBLE_EQ(result->metrics.mfu_reported.value(), 0.375);
  EXPECT_EQ(entry.trial.labels, R"({"run":"a, b"})");
  EXPECT_EQ(result->outcome, Outcome::kOk) << "measured, and nothing says otherwise";
  EXPECT_THAT(read.notes, Contains(HasSubstr("dimensions of model 'my-net' are not known")));
}

TEST(Import, ModelsWithoutDimensionsStayApart) {
  const Imported read = must("model,micro_batch_size,tok_s_gpu\na,1,5\nb,1,6\n");
  EXPECT_NE(read.rows[0].entry.id, read.rows[1].entry.id);
  EXPECT_FALSE(knows_dimensions(read.rows[0].entry.trial.spec));
}

TEST(Import, TheLayoutIsCompletedByTheRankAlgebra) {
  const Imported read = must("model,nodes,tp,mbs,gbs,tok_s_gpu\nm,2,4,2,256,5\n");
  const Trial& t = only(read).entry.trial;
  EXPECT_EQ(std::tuple(t.dp, t.gpus_per_node, t.grad_accum), std::tuple(4, 8, 32));
  EXPECT_THAT(refusal_of("model,nodes,tp,mbs,tok_s_gpu\nm,1,3,2,5\n"),
              AllOf(At(2), IsError(ErrorKind::kInvalidValue, "dp")));
  EXPECT_THAT(refusal_of("model,dp,mbs,gbs,tok_s_gpu\nm,8,3,256,5\n"),
              AllOf(At(2), IsError(ErrorKind::kInvalidValue, "grad_accum")));
}

// One file must not become eight times as fast by the spelling of its hardware.
TEST(Import, WhatIsAssumedOfTheNodesIsSaidAndRefusedWhereNothingTells) {
  const std::string text = "model,nodes,tp,mbs,tok_s_gpu\nm,1,4,2,5\nm,1,2,2,5\n";
  const auto assumes = [](const Imported& read) {
    return std::ranges::count_if(read.notes, [](const auto& note) { return note.starts_with("2 rows: dp"); });
  };
  EXPECT_EQ(assumes(must(text)), 1) << "full nodes of 8";
  const std::vector<std::string> unknown = {"hardware=A100", "seq_len=4096", "precision=bf16"};
  EXPECT_THAT(refusal_of(text, with({}, unknown)), AllOf(At(2), IsError(ErrorKind::kMissing, "dp")));
  auto stated = unknown;
  stated.push_back("gpus_per_node=4");
  const Imported read = must(text, with({}, stated));
  EXPECT_EQ(read.rows[0].entry.trial.dp, 1);
  EXPECT_EQ(read.rows[1].entry.trial.dp, 2);
  EXPECT_EQ(assumes(read), 0) << "the file and its flags say it all";
  EXPECT_EQ(assumes(must("model,mbs,tok_s_gpu\nm,2,5\nm,4,5\n")), 1) << "one replica";
}

TEST(Import, ARateThatNoMachineHasIsRefused) {
  for (const char* column : {"tok_s_gpu", "tok_s"})
    EXPECT_EQ(refusal_of(fmt::format("model,mbs,{}\nm,2,1e308\n", column)).kind, ErrorKind::kInvalidValue);
  EXPECT_THAT(refusal_of("model,mbs,t\nm,2,1e308\n", with({"t=step_ms:ms"})),
              AllOf(At(2), IsError(ErrorKind::kInvalidValue, "step_ms")));
}

// Text that `sweep export csv` guards against spreadsheets comes back unchanged.
TEST(Import, TextBehindAnApostropheIsWhatWasExported) {
  for (const std::string name : {"--x", "+a", "=1+1", "@b", "'=c", "''-d", "'plain"}) {
    const Imported read = must(fmt::format("model,mbs,tok_s_gpu\n{},2,5\n", guarded(name)));
    EXPECT_EQ(only(read).entry.trial.model, name);
  }
}

TEST(Import, RowsWithoutAnAnswerAreLeftOut) {
  const Imported read =
      must("model,mbs,status,tok_s_gpu\nm,1,cancelled,\nm,2,pending,\nm,4,pruned,\nm,8,ok,5\n");
  EXPECT_EQ(read.left_out, 2);
  ASSERT_EQ(read.rows.size(), 2u);
  EXPECT_FALSE(read.rows[0].entry.admitted);
  EXPECT_FALSE(read.rows[0].result);
}

TEST(Import, APrunedRowThatNoLayoutCanBeIsAsItWasPlanned) {
  const std::string head = "model,mbs,gbs,dp,status,tok_s_gpu\n";
  const Imported read = must(head + "m,3,8,1,pruned,\nm,2,8,1,ok,5\n");
  EXPECT_EQ(read.left_out, 0);
  ASSERT_EQ(read.rows.size(), 2u);
  EXPECT_FALSE(read.rows[0].entry.admitted);
  EXPECT_EQ(read.rows[0].entry.trial.grad_accum, 0) << "no value";
}

TEST(Import, ResultsOfACommandAreReadWithoutTheirProgram) {
  const Imported read = must("model,mbs,workload,tok_s_gpu\nm,1,command,5\nm,2,step,6\n");
  ASSERT_EQ(read.rows.size(), 2u);
  EXPECT_EQ(read.rows[0].entry.trial.workload, Workload::kStep);
}

TEST(Import, AResultOfACommandWithItsProgramIsThatTrial) {
  Trial ran;
  ran.model = "command", ran.hardware = "cpu", ran.workload = Workload::kCommand;
  ran.program = R"({"argv":["python3","t.py"]})";
  ran.labels = R"({"@axes":" hardware ","lr":0.5})";
  const Imported read = must(
      "model,hardware,workload,program,labels,precision,seq_len,mbs,step_ms\n"
      "command,cpu,command,\"{\"\"argv\"\":[\"\"python3\"\",\"\"t.py\"\"]}\","
      "\"{\"\"@axes\"\":\"\" hardware \"\",\"\"lr\"\":0.5}\",,,,5\n",
      with({}, {}));
  EXPECT_EQ(only(read).entry.trial, ran);
  EXPECT_EQ(only(read).entry.id, trial_id(ran));
}

TEST(Import, ALabelKeepsWhatItsTextSays) {
  const Imported read = must(
      "model,mbs,tok_s_gpu,run\nm,1,1,007\nm,2,1,12345678901234567890\nm,3,1,7\nm,4,1,0.50\n"
      "m,5,1,-2\nm,6,1,0\n",
      with({"run=label:run"}));
  std::vector<std::string> labels;
  for (const ImportedRow& row : read.rows) labels.push_back(row.entry.trial.labels);
  EXPECT_THAT(labels,
              ::testing::ElementsAre(R"({"run":"007"})", R"({"run":"12345678901234567890"})", R"({"run":7})",
                                     R"({"run":0.5})", R"({"run":-2})", R"({"run":0})"));
}

TEST(Import, AnAxisIsSetOnce) {
  EXPECT_THAT(
      refusal_of("model,mbs,tok_s_gpu\nm,1,5\n", with({}, {kBase[0], kBase[1], kBase[2], "dp=1", "dp=2"})),
      IsError(ErrorKind::kConflict, "dp"));
}

struct Bad {
  const char* text;
  ErrorKind kind;
  const char* subject;
};

TEST(Import, BadRowsAreRefusedWithFileLineColumnAndCode) {
  const std::string good = "1B,1,8,1,1,16,2,256,0,ok,39.2,40150,50.2\n";
  const Bad cases[] = {
      {"1B,1,8", ErrorKind::kInvalidValue, ""},
      {"1B,1,x,1,1,16,2,256,0,ok,1,1,1", ErrorKind::kInvalidValue, "dp"},
      {"1B,1,0,1,1,16,2,256,0,ok,1,1,1", ErrorKind::kInvalidValue, "dp"},
      {"1B,1,8,1,1,16,2,256,7,ok,1,1,1", ErrorKind::kInvalidValue, "zero"},
      {"1B,1,8,1,1,16,2.5,256,0,ok,1,1,1", ErrorKind::kInvalidValue, "mbs"},
      {"1B,1,8,1,1,16,2,256,0,ok,1,\"40,150\",1", ErrorKind::kInvalidValue, "tok_s_gpu"},
      {"1B,1,8,1,1,16,2,256,0,ok,1,-1,1", ErrorKind::kInvalidValue, "tok_s_gpu"},
      {"1B,1,8,1,1,16,2,256,0,ok,1,inf,1", ErrorKind::kInvalidValue, "tok_s_gpu"},
      {"1B,1,8,1,1,16,2,256,0,great,1,1,1", ErrorKind::kInvalidValue, "great"},
      {",1,8,1,1,16,2,256,0,ok,1,1,1", ErrorKind::kMissing, "model"},
      {"1B,3,8,1,1,16,2,256,0,ok,1,1,1", ErrorKind::kInvalidValue, "gpus_per_node"},
      {"1B,1,1000000,1000000,1000000,1,1,1,0,ok,1,1,1", ErrorKind::kInvalidValue, "world"},
      {"1B,1,8,1,1,16,99999999999999999999,256,0,ok,1,1,1", ErrorKind::kInvalidValue, "mbs"},
  };
  for (const auto& [text, kind, subject] : cases)
    EXPECT_THAT(refusal_of(std::string(kPlaybook) + good + text + "\n", with({}, {})),
                AllOf(At(3), IsError(kind, subject)))
        << text;
}

TEST(Import, RehearsedRowsAreRefusedWhateverTheFlags) {
  const auto file = [](std::string_view first, std::string_view second) {
    return fmt::format(
        "model,nodes,dp,tp,pp,gas,mbs,gbs,zero,status,mfu_pct,tok_s_gpu,mem_gb,Rehearsed\n"
        "1B,1,8,1,1,16,2,256,0,ok,39.2,40150,50.2,{}\n1B,1,8,1,1,8,4,256,0,ok,39.2,40150,50.2,{}\n",
        first, second);
  };
  EXPECT_TRUE(read(file("0", "false"), with()));
  EXPECT_TRUE(read(file("", "0"), with()));
  for (const char* cell : {"1", "true", "B", "yes"})
    EXPECT_THAT(refusal_of(file("0", cell), with()), AllOf(At(3), IsError(ErrorKind::kRefused, "Rehearsed")));
  EXPECT_FALSE(read(file("1", "0"), with({"Rehearsed=-"})));
  Options rest = with();
  rest.leave_rest = true;
  EXPECT_FALSE(read(file("1", "0"), rest));
}

TEST(Import, BadHeadersAndOptionsAreRefusedByCode) {
  EXPECT_THAT(refusal_of(""), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(refusal_of("model;nodes\n1B;1\n"), AllOf(At(1), IsError(ErrorKind::kInvalidValue)));
  EXPECT_THAT(refusal_of("model,model\n"), AllOf(At(1), IsError(ErrorKind::kConflict, "model")));
  EXPECT_THAT(refusal_of("model,gas,grad_accum\n"),
              AllOf(At(1), IsError(ErrorKind::kConflict, "grad_accum")));
  EXPECT_THAT(
      refusal_of("model,micro_batch_sise\n"),
      AllOf(At(1), IsError(ErrorKind::kUnknownName, "micro_batch_sise"), Suggests("micro_batch_size")));
  EXPECT_THAT(refusal_of("model,,mbs\n"), AllOf(At(1), IsError(ErrorKind::kMissing)));
  EXPECT_THAT(refusal_of("model,mbs,t\n", with({"t=step_ms"})),
              AllOf(At(1), IsError(ErrorKind::kInvalidValue, "t")));
  EXPECT_THAT(refusal_of("model,mbs,t\n", with({"t=step_ms:GB"})),
              AllOf(At(1), IsError(ErrorKind::kInvalidValue, "t")));
  EXPECT_THAT(refusal_of("model,mbs,t\n", with({"t=mfu:%"})),
              AllOf(At(1), IsError(ErrorKind::kUnsupported, "t")));
  EXPECT_THAT(refusal_of("model,mbs,t\n", with({"u=step_ms:s"})), IsError(ErrorKind::kUnknownName, "u"));
  EXPECT_THAT(refusal_of("model,mbs,t\n", with({"t"})), IsError(ErrorKind::kInvalidValue, "--map"));
  EXPECT_THAT(refusal_of("mbs,tok_s_gpu\n"), AllOf(At(1), IsError(ErrorKind::kMissing, "model")));
  EXPECT_THAT(refusal_of("model,mbs,tok_s_gpu\n", with({}, {})),
              AllOf(At(1), IsError(ErrorKind::kMissing, "hardware")));
  EXPECT_THAT(refusal_of("model,mbs\n", with({}, {"mbs=3"})), IsError(ErrorKind::kUnknownName, "mbs"));
  EXPECT_THAT(refusal_of("model,mbs\n", with({}, {"precision=int3"})),
              IsError(ErrorKind::kInvalidValue, "int3"));
  EXPECT_THAT(refusal_of("model,mbs,seq_len\n"), IsError(ErrorKind::kConflict, "seq_len"));
  Options options = with();
  options.models = {"a=no-such-model"};
  EXPECT_THAT(refusal_of("model,mbs\n", options), IsError(ErrorKind::kUnknownName, "no-such-model"));
}

TEST(Import, OtherColumnsCanBeLeftOutAtOnce) {
  Options options = with();
  options.leave_rest = true;
  EXPECT_THAT(must("model,mbs,foo,bar,tok_s_gpu\nm,1,?,?,5\n", options).notes,
              Contains(HasSubstr("left out: foo, bar")));
}

}  // namespace
}  // namespace sweep::imports
