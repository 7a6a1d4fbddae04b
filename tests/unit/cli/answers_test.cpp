// The commands that answer, as people type them, on a database that `sweep import` made: exit codes and values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "schema/columns.h"
#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

using nlohmann::json;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Answers : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    measured_ = file("m.csv",
                     "model,mbs,dp,nodes,tok_s_gpu,outcome\n"
                     "a,1,8,1,10,ok\na,2,8,1,20,ok\na,4,8,1,,oom\nb,1,16,2,15,ok\n");
    bring(measured_, "m");
  }
  void bring(const std::string& csv, const std::string& name) {
    const Answer said = ask({"import", csv, "--sweep", name, "--set", "seq_len=4096", "--set",
                             "precision=bf16", "--hardware", "h100-sxm-80gb"});
    ASSERT_EQ(said.code, kAnswered) << said.err;
  }
  json asked(std::vector<std::string> words) {
    const Answer said = ask(words);
    EXPECT_EQ(said.code, kAnswered) << said.err;
    return json::parse(said.out, nullptr, false);
  }
  std::string made(const std::string& name) const { return dir_ / name; }

  std::string measured_;
};

TEST_F(Answers, StatusCountsOutcomesAndNamesTheBest) {
  const json document = asked({"status", "--json"});
  EXPECT_EQ(document["sweep"], "m");
  EXPECT_EQ(document["total"], 4);
  EXPECT_EQ(document["pending"], 0);
  EXPECT_EQ(document["outcomes"]["ok"], 3);
  EXPECT_EQ(document["outcomes"]["oom"], 1);
  EXPECT_EQ(document["outcomes"]["hang"], 0);
  EXPECT_EQ(document["best"]["value"], 20);
  EXPECT_EQ(document["best"]["configuration"]["micro_batch_size"], 2);
  EXPECT_TRUE(document["run_by"].is_null());
  EXPECT_NE(ask({"status"}).out.find(document["best"]["trial"]), std::string::npos);
}

TEST_F(Answers, BestAsJsonAndAsAGridNamesTheSameTrials) {
  const json groups = asked({"best", "--json"});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0]["group"]["model"], "a");
  EXPECT_EQ(groups[0]["value"], 20);
  EXPECT_EQ(groups[0]["not_ok"], 1);
  EXPECT_EQ(groups[1]["value"], 15);
  const json by_nodes = asked({"best", "--json", "--by", "nodes", "--metric", "tokens_per_s"});
  ASSERT_EQ(by_nodes.size(), 2u);
  EXPECT_EQ(by_nodes[1]["value"], 15 * 16);
  const Answer grid = ask({"best", "--yaml"});
  EXPECT_EQ(grid.code, kAnswered);
  EXPECT_NE(grid.out.find("micro_batch_size: 2\n"), std::string::npos) << grid.out;
  EXPECT_EQ(ask({"best", "--json", "--yaml"}).code, kBadInput);
  EXPECT_EQ(ask({"best", "--for", "deepspeed"}).code, kBadInput) << "two winners";
  EXPECT_EQ(ask({"best", "--for", "deepspeed", "--by", "hardware"}).code, kAnswered);
  EXPECT_EQ(ask({"best", "--for", "MEGATRON", "--by", "hardware"}).out,
            ask({"best", "--for", "Megatron-LM", "--by", "hardware"}).out)
      << "a recipe's name is its trainer's";
  EXPECT_EQ(ask({"best", "--for", "torchrun", "--by", "hardware"}).code, kBadInput)
      << "this recipe leaves flags to the script";
}

TEST_F(Answers, HeatmapWritesEachFormByItsEnding) {
  const std::string csv = made("h.csv");
  EXPECT_EQ(ask({"heatmap", "--rows", "model", "--cols", "nodes", "--value", "tokens_per_s_gpu", "--only",
                 "model=a,b", "-o", csv})
                .code,
            kAnswered);
  const auto cells = csv_rows(text_of(csv));
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[0].at("state"), "measured");
  EXPECT_EQ(cells[0].at("tokens_per_s_gpu"), "20");
  EXPECT_EQ(cells[0].at("oom"), "1");
  EXPECT_EQ(cells[1].at("state"), "empty");
  for (const char* name : {"h.html", "h.svg"}) {
    EXPECT_EQ(ask({"heatmap", "-o", made(name)}).code, kAnswered);
    EXPECT_GT(text_of(made(name)).size(), 1000u);
  }
  EXPECT_EQ(ask({"heatmap", "-o", made("h.jpg")}).code, kBadInput);
  EXPECT_EQ(ask({"heatmap", "-o", made("h.csv"), "--rows", "nodes", "--cols", "nodes"}).code, kBadInput);
}

TEST_F(Answers, ReportIsOnePageBesideAnotherSweepIfAsked) {
  bring(file("n.csv", "model,mbs,dp,nodes,tok_s_gpu\na,1,8,1,11\na,2,8,1,18\n"), "n");
  EXPECT_EQ(ask({"report", "m", "-o", made("r.html")}).code, kAnswered);
  EXPECT_EQ(text_of(made("r.html")).find("id=\"beside\""), std::string::npos);
  EXPECT_EQ(ask({"report", "m", "--beside", "n", "-o", made("b.html")}).code, kAnswered);
  EXPECT_GT(text_of(made("b.html")).size(), text_of(made("r.html")).size());
  EXPECT_EQ(ask({"report", "absent", "-o", made("x.html")}).code, kBadInput);
  EXPECT_FALSE(std::filesystem::exists(made("x.html")));
}

TEST_F(Answers, PagesOfATrialAndOfComparisonsAreWrittenAndTheirEndingIsChecked) {
  const json rows = asked({"query", "select trial from results order by micro_batch_size", "--json"});
  const std::string first = rows[0]["trial"], second = rows[1]["trial"];
  EXPECT_EQ(ask({"explain", first, "-o", made("t.html")}).code, kAnswered);
  EXPECT_NE(text_of(made("t.html")).find("Trial " + first), std::string::npos);
  EXPECT_EQ(ask({"explain", first, "-o", made("t.svg")}).code, kBadInput);
  EXPECT_EQ(ask({"explain", "absent", "-o", made("x.html")}).code, kBadInput);
  EXPECT_FALSE(std::filesystem::exists(made("x.html")));
  EXPECT_EQ(ask({"compare", "m", "m", "-o", made("c.html")}).code, kAnswered);
  EXPECT_GT(text_of(made("c.html")).size(), 1000u);
  EXPECT_EQ(ask({"compare", "m", "m", "-o", made("c.png")}).code, kBadInput);
  EXPECT_EQ(ask({"compare", "m"}).code, kBadInput);
  const json sides = asked({"compare", "--trials", first + "," + second, "--json"});
  ASSERT_FALSE(sides.empty());
  EXPECT_TRUE(sides[0].contains("ratio_" + second));
  const std::string third = rows[2]["trial"];
  const json three = asked({"compare", "--trials", first + "," + second + "," + third, "--json"});
  EXPECT_TRUE(three[0].contains("ratio_" + second) && three[0].contains("ratio_" + third));
  EXPECT_FALSE(three[0].contains("ratio_" + first)) << "the first one is the reference";
  EXPECT_EQ(ask({"compare", "m", "--trials", first}).code, kBadInput);
  EXPECT_EQ(ask({"compare", "m", "m", "--trials", first + "," + second}).code, kBadInput);
  EXPECT_EQ(ask({"compare", "m", "--trials", first + ",absent"}).code, kBadInput);
  EXPECT_EQ(ask({"compare", "m", "--trials", first + "," + second, "--transfer"}).code, kBadInput);
}

TEST_F(Answers, TablesAreOfEveryKindAndForm) {
  for (const char* kind : {"cost", "batch", "scaling", "max-batch", "max-model", "stages"})
    for (const char* form : {"--json", "--csv", "--markdown"})
      EXPECT_EQ(ask({"table", kind, form}).code, kAnswered) << kind << form;
  const json cost = asked({"table", "cost", "--json"});
  ASSERT_EQ(cost.size(), 4u);
  EXPECT_EQ(cost[1]["mt_per_hour"], 0.576);
  EXPECT_EQ(cost[1]["star"], "★");
  EXPECT_TRUE(cost[2]["cost_per_mt"].is_null()) << "out of memory";
  EXPECT_EQ(ask({"table", "absent"}).code, kBadInput);
  EXPECT_EQ(ask({"table", "stages", "--metric", "loss_scale"}).code, kBadInput);
  EXPECT_EQ(ask({"table", "max-batch", "--epoch-tokens", "0"}).code, kBadInput);
}

TEST_F(Answers, CompareFindsWhatChangedAndFailsOnRegressionsOnly) {
  bring(file("n.csv", "model,mbs,dp,nodes,tok_s_gpu,outcome\na,1,8,1,5,ok\na,2,8,1,,oom\n"), "n");
  const json pairs = asked({"compare", "m", "n", "--json"});
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0]["change"], "broke");
  EXPECT_EQ(pairs[1]["share"], -0.5);
  EXPECT_EQ(ask({"compare", "m", "n", "--fail-on-regression", "5%"}).code, kRegression);
  EXPECT_EQ(ask({"compare", "m", "m", "--fail-on-regression", "5%"}).code, kAnswered);
  EXPECT_EQ(ask({"compare", "m", path_.string() + ":n", "--only-a", "micro_batch_size=1"}).code, kAnswered);
  EXPECT_EQ(ask({"compare", "m", "absent"}).code, kBadInput);
  EXPECT_EQ(ask({"compare", "m", "n", "--fdr", "2"}).code, kBadInput);
  const json transfer = asked({"compare", "--transfer", "m", "m", "--json", "--by", "model"});
  EXPECT_TRUE(transfer.is_object());
}

TEST_F(Answers, CompareTakesFurtherSweepsEachAgainstTheFirst) {
  bring(file("n.csv", "model,mbs,dp,nodes,tok_s_gpu\na,1,8,1,20\n"), "n");
  bring(file("o.csv", "model,mbs,dp,nodes,tok_s_gpu,outcome\na,1,8,1,5,ok\na,2,8,1,,oom\n"), "o");
  bring(file("p.csv", "model,mbs,dp,nodes,tok_s_gpu\na,64,8,1,20\n"), "p");
  const json pairs = asked({"compare", "m", "n", "o", "--json"});
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0]["side"], "B");
  EXPECT_EQ(pairs[0]["share"], 1.0);
  EXPECT_EQ(pairs[1]["sweep"], "o");
  EXPECT_EQ(pairs[1]["change"], "broke");
  EXPECT_EQ(ask({"compare", "m", "n", "m", "--fail-on-regression", "5%"}).code, kAnswered);
  EXPECT_EQ(ask({"compare", "m", "n", "o", "--fail-on-regression", "5%"}).code, kRegression);
  EXPECT_EQ(ask({"compare", "m", "n", "o", "-o", made("three.html")}).code, kAnswered);
  EXPECT_NE(text_of(made("three.html")).find("C against A"), std::string::npos);
  EXPECT_EQ(ask({"compare", "m", "n", "p"}).code, kBadInput) << "p has nothing in common with m";
  EXPECT_EQ(ask({"compare", "m", "n", "o", "--transfer"}).code, kBadInput);
  std::vector<std::string> many = {"compare"};
  many.resize(28, "m");
  EXPECT_EQ(ask(many).code, kBadInput) << "27 sweeps";
}

TEST_F(Answers, ExplainIsOfOneTrialByTheBeginningOfItsId) {
  const json rows = asked({"query", "select trial from results where outcome = 'oom'", "--json"});
  const std::string id = rows[0]["trial"];
  const json document = asked({"explain", id.substr(0, 6), "--json"});
  EXPECT_EQ(document["trial"], id);
  EXPECT_EQ(document["attempts"][0]["final"], true);
  EXPECT_EQ(document["attempts"][0]["result"]["outcome"], "oom");
  EXPECT_NE(ask({"explain", id}).out.find(" (final)"), std::string::npos);
  EXPECT_EQ(ask({"explain", "zzzz"}).code, kBadInput);
}

TEST_F(Answers, QueryIsReadOnlyAndTakesValues) {
  EXPECT_EQ(asked({"query", "select count(*) as n from results where nodes = :n", "--set", "n=2", "--json"}),
            json::parse(R"([{"n":1}])"));
  EXPECT_EQ(ask({"query", "delete from result"}).code, kBadInput);
  EXPECT_EQ(ask({"query"}).code, kBadInput);
  EXPECT_EQ(ask({"query", "outcome"}).code, kBadInput) << "no saved query of this name";
  EXPECT_EQ(ask({"query", "outcomes", "--csv"}).code, kAnswered);
  EXPECT_NE(ask({"query", "--list"}).out.find("outcomes"), std::string::npos);
}

TEST_F(Answers, ExportHasEveryTrialInEveryForm) {
  const auto rows = csv_rows(ask({"export", "csv"}).out);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].at("tokens_per_s_gpu"), "20");
  EXPECT_EQ(rows[2].at("tokens_per_s_gpu"), "") << "not measured is empty";
  const json document = asked({"export", "json"});
  ASSERT_EQ(document.size(), 4u);
  EXPECT_EQ(document[1]["tokens_per_s_gpu"], 20);
  EXPECT_TRUE(document[2]["tokens_per_s_gpu"].is_null());
  EXPECT_EQ(ask({"export", "jsonl", "-o", made("e.jsonl")}).code, kAnswered);
  const std::string lines = text_of(made("e.jsonl"));
  EXPECT_EQ(std::ranges::count(lines, '\n'), 4);
  for (const char* form : {"bencher", "github-benchmark"})
    EXPECT_TRUE(!asked({"export", form}).is_discarded());
  EXPECT_EQ(ask({"export", "csv", "--again"}).code, kBadInput) << "an option of the trackers";
  EXPECT_EQ(ask({"export", "github-benchmark", "--metric", "peak_rank"}).code, kBadInput);
}

TEST_F(Answers, SuggestGivesTheFastestOfEachPlace) {
  const Answer said = ask({"suggest", "a"});
  EXPECT_EQ(said.code, kAnswered);
  EXPECT_NE(said.out.find("micro_batch_size: 2 "), std::string::npos) << said.out;
  EXPECT_EQ(ask({"suggest", "absent"}).code, kUnanswered);
  const json all = asked({"suggest", "--json"});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["configuration"]["micro_batch_size"], 2);
  EXPECT_EQ(all[0]["tokens_per_s_gpu"], 20);
  EXPECT_EQ(all[0]["ran"], 2);
  EXPECT_EQ(all[0]["out_of_memory_from_micro_batch_size"], 4);
  EXPECT_TRUE(all[1]["out_of_memory_from_micro_batch_size"].is_null());
  const Answer none = ask({"suggest", "absent", "--json"});
  EXPECT_EQ(none.code, kUnanswered);
  EXPECT_EQ(json::parse(none.out), json::array());
}

TEST_F(Answers, ImportSaysWhatItBrought) {
  const json first = asked({"import", measured_, "--sweep", "again", "--set", "seq_len=4096", "--set",
                            "precision=bf16", "--hardware", "h100-sxm-80gb", "--json"});
  EXPECT_EQ(first["sweep"], "again");
  EXPECT_EQ(first["file"], measured_);
  EXPECT_EQ(first["configurations"], 4);
  EXPECT_EQ(first["outcomes"], json::parse(R"({"ok": 3, "oom": 1})"));
  EXPECT_EQ(first["results_new"], 4);
  EXPECT_EQ(first["results_known"], 0);
  EXPECT_EQ(first["with_mfu"], 0) << "models without dimensions";
}

TEST_F(Answers, MergeSaysWhatIsNewAndWhatIsKnown) {
  const std::string into = made("into.db");
  const auto merge = [&] { return json::parse(sweep({"merge", into, path_.string(), "--json"}).out); };
  json said = merge();
  EXPECT_EQ(said["into"], into);
  ASSERT_EQ(said["merged"].size(), 1u);
  EXPECT_EQ(said["merged"][0]["from"], path_.string());
  EXPECT_EQ(said["merged"][0]["trials_new"], 4);
  EXPECT_EQ(said["merged"][0]["results_new"], 4);
  said = merge();
  EXPECT_EQ(said["merged"][0]["trials_new"], 0);
  EXPECT_EQ(said["merged"][0]["results_known"], 4);
  const Answer absent = sweep({"merge", into, made("absent.db"), "--json"});
  EXPECT_EQ(absent.code, kBadInput);
  EXPECT_TRUE(json::parse(absent.err).contains("error"));
}

// The options that a help text names.
std::vector<std::string> flags_in(const std::string& help) {
  std::vector<std::string> out;
  std::istringstream words(help);
  for (std::string word; words >> word;)
    if (word.starts_with("--") && word.size() > 3)
      out.push_back(word.substr(0, word.find_first_not_of("-abcdefghijklmnopqrstuvwxyz")));
  return out;
}

TEST(CommandLine, CompletionAndManualKnowEveryCommandAndFlag) {
  const std::string completion = sweep({"completion", "bash"}).out, manual = sweep({"manual"}).out;
  const auto listed = completion.substr(completion.find("compgen -W \"") + 12);
  std::istringstream names(listed.substr(0, listed.find("--help")));
  i64 commands = 0;
  for (std::string name; names >> name; ++commands) {
    EXPECT_NE(manual.find("sweep " + name), std::string::npos) << name;
    const Answer help = sweep({name, "--help"});
    EXPECT_EQ(help.code, kAnswered) << name;
    EXPECT_EQ(help.err, "") << name;
    for (const std::string& flag : flags_in(help.out))
      EXPECT_NE(completion.find(flag), std::string::npos) << name << " " << flag;
  }
  EXPECT_GT(commands, 30);
  EXPECT_EQ(sweep({"completion", "tcsh"}).code, kBadInput);
}

TEST(CommandLine, WhatIsNoCommandOrNoOptionIsRefused) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"runn"},
                                             {"best", "--absent"},
                                             {"best", "--metric"},
                                             {"status", "--json", "--watch"},
                                             {"--absent"}}) {
    const Answer said = sweep(words);
    EXPECT_EQ(said.code, kBadInput) << (words.empty() ? "" : words.back());
    EXPECT_EQ(said.out, "");
    EXPECT_NE(said.err, "");
  }
  EXPECT_EQ(sweep({"--version"}).code, kAnswered);
  EXPECT_EQ(sweep({"--help"}).code, kAnswered);
}

TEST_F(CommandTest, ADatabaseThatIsNotThereIsRefusedAndNotMade) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"status"},
                                             {"best"},
                                             {"heatmap", "-o", "x.svg"},
                                             {"report", "-o", "x.html"},
                                             {"table", "cost"},
                                             {"compare", "a", "b"},
                                             {"explain", "a"},
                                             {"query", "select 1"},
                                             {"export", "csv"},
                                             {"suggest"}})
    EXPECT_EQ(ask(words).code, kBadInput) << words.front();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Answers, ColumnsHoldWhatTheRowsHold) {
  const Answer said =
      ask({"export", "columns", "--columns", "trial,model,micro_batch_size,tokens_per_s_gpu"});
  ASSERT_EQ(said.code, kAnswered) << said.err;
  const auto end = said.out.find('\n');
  const json head = json::parse(said.out.substr(0, end));
  ASSERT_EQ(head["rows"], 4);
  const auto& columns = head["columns"];
  ASSERT_EQ(columns.size(), 4);
  const auto code = [&](std::size_t column, std::size_t row) {
    std::uint32_t out;
    std::memcpy(&out, said.out.data() + end + 1 + 4 * (4 * column + row), sizeof out);
    return columns[column]["values"].at(out);
  };
  std::map<std::pair<std::string, int>, double> found;
  std::set<std::string> ids;
  for (std::size_t row = 0; row < 4; ++row) {
    double rate;
    std::memcpy(&rate, said.out.data() + end + 1 + 3 * 16 + 8 * row, sizeof rate);
    found[{code(1, row), code(2, row)}] = std::isnan(rate) ? -1 : rate;
    EXPECT_EQ(ask({"explain", code(0, row)}).code, kAnswered);
    ids.insert(code(0, row));
  }
  EXPECT_EQ(ids.size(), 4);
  EXPECT_EQ(found, (std::map<std::pair<std::string, int>, double>{
                       {{"a", 1}, 10}, {{"a", 2}, 20}, {{"a", 4}, -1}, {{"b", 1}, 15}}));
  EXPECT_EQ(said.out.size(), end + 1 + 3 * 16 + 32);
  EXPECT_EQ(ask({"export", "columns", "--columns", "tokens_per_sec"}).code, kBadInput);
  EXPECT_EQ(ask({"export", "csv", "--columns", "trial"}).code, kBadInput);
}

TEST_F(Answers, AxesOfAGridsOwnAreColumns) {
  const std::string rows =
      file("lr.csv", "model,mbs,dp,tok_s_gpu,outcome,rate,kind\na,1,8,10,ok,0.5,x\na,2,8,20,ok,1,\n");
  ASSERT_EQ(ask({"import", rows, "--sweep", "lr", "--set", "seq_len=4096", "--set", "precision=bf16",
                 "--hardware", "h100-sxm-80gb", "--map", "rate=label:lr", "--map", "kind=label:kind"})
                .code,
            kAnswered);
  const auto heading = [&](const Answer& said) {
    return json::parse(said.out.substr(0, said.out.find('\n')));
  };
  const json all = heading(ask({"export", "columns", "lr"}))["columns"];
  ASSERT_EQ(all.size(), sweep::columns().size() + 2);
  EXPECT_EQ(all[all.size() - 2]["name"], "kind");
  EXPECT_EQ(all[all.size() - 2]["type"], "text");
  EXPECT_EQ(all[all.size() - 1]["name"], "lr");
  const Answer two = ask({"export", "columns", "lr", "--columns", "trial,lr"});
  ASSERT_EQ(two.code, kAnswered) << two.err;
  const json head = heading(two);
  EXPECT_EQ(head["columns"][1]["type"], "f64");
  const auto values = head["columns"][1]["values"].get<std::set<double>>();
  EXPECT_EQ(values, (std::set<double>{0.5, 1}));
  EXPECT_EQ(two.out.size(), two.out.find('\n') + 1 + 2 * 2 * 4);
  EXPECT_EQ(ask({"export", "columns", "m", "--columns", "trial,lr"}).code, kBadInput)
      << "the other sweep has none";
}

TEST_F(Answers, QueryEndsLinesAsFiltersExpect) {
  EXPECT_EQ(ask({"query", "select 1 as a, 2 as b", "--csv"}).out, "a,b\n1,2\n");
}

}  // namespace
}  // namespace sweep::cli
