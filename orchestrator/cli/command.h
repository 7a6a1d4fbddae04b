// Shared by all commands: where text goes, how an error ends, how the database and the sweep are named.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/expected.h"
#include "orchestrator/store/store.h"

namespace sweep::cli {

// Checks of numbers: above 0; 0 or more.
CLI::Validator above_zero();
CLI::Validator not_negative();
// Help of an option that names the metric of an answer (usual_metric).
inline constexpr const char* kUsualMetric =
    "metric that is shown and decides which configuration is best; absent: tokens_per_s_gpu, "
    "useful_tokens_per_s_gpu "
    "where results have padding, or step_ms where they tell step times alone";
inline constexpr int kAnswered = 0, kUnanswered = 1, kBadInput = 2, kRegression = 3, kExitDiskFull = 4,
                     kInterrupted = 130;
// The same for people: help, the manual page and README.md.
struct ExitCode {
  int code;
  const char* meaning;
};
inline constexpr ExitCode kExitCodes[] = {
    {kAnswered, "finished; every trial has an answer"},
    {kUnanswered,
     "finished, but some trials have no answer (crash, hang, timeout, invalid), or a check failed"},
    {kBadInput, "wrong input, or something cannot be read or written"},
    {kRegression, "compare --fail-on-regression found a regression"},
    {kExitDiskFull, "the disk is full, or the quota used up; free space and run the command again"},
    {kInterrupted, "interrupted"},
};

// Data goes to out, people's text to err.
struct Io {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int width = 100;             // columns of the terminal, or what a pipe gets
  std::istream* in = nullptr;  // a terminal, where a person can be asked; null: there is none
  bool json = false;           // --json is among the arguments: an error is printed as a JSON object
};

// Writes a line of progress to err; quiet: to nowhere.
std::function<void(const std::string&)> progress_to(Io&, bool quiet);

using Action = std::function<int()>;

// A command adds itself to the table and, when parsed, sets what is to be done.
struct Registry {
  CLI::App& app;
  Io& io;
  Action& chosen;
};

void add_run(Registry);
void add_resume(Registry);
void add_stop(Registry);
void add_plan(Registry);
void add_predict(Registry);
void add_replay(Registry);
void add_suggest(Registry);
void add_choose(Registry);
void add_explain(Registry);
void add_simulate(Registry);
void add_status(Registry);
void add_best(Registry);
void add_heatmap(Registry);
void add_table(Registry);
void add_report(Registry);
void add_compare(Registry);
void add_query(Registry);
void add_export(Registry);
void add_import(Registry);
void add_merge(Registry);
void add_list(Registry);
void add_backup(Registry);
void add_delete(Registry);
void add_serve(Registry);
void add_confirm(Registry);
void add_logs(Registry);
void add_ingest(Registry);
void add_clean(Registry);
void add_doctor(Registry);
void add_selftest(Registry);
void add_calibrate(Registry);
void add_models(Registry);
void add_hardware(Registry);
void add_completion(Registry);
void add_manual(Registry);
void add_init(Registry);
void add_wrap(Registry);

// Prints the error (with --json as one JSON object) and gives its exit code: bad input, or a full disk.
int refuse(Io&, const Error&);

// Prints the document of --json, which schema/json describes: one line for each key, then a line end.
void print_document(Io&, const nlohmann::json&);

// --db and the name of a sweep, as most commands take them.
struct SweepSelector {
  std::string db = "sweep.db";
  std::optional<std::string> sweep;
};
void add_db(CLI::App& command, SweepSelector&);
void add_sweep(CLI::App& command, SweepSelector&);  // optional positional: absent means the latest

// --json of a command that asks Io::json alone. The sentence says what is JSON: a document and errors, or errors alone.
inline constexpr const char* kJsonDocument = "as JSON (docs/json.md)";
inline constexpr const char* kJsonErrors = "an error is a JSON object on standard error";
void add_json(CLI::App& command, const std::string& sentence = kJsonDocument);

// Error: there is no such file, and how one is made.
Expected<void> database_is_there(const std::string& db);

struct Opened {
  std::unique_ptr<store::Store> store;
  store::SweepRow sweep;
};
Expected<Opened> open_sweep(const SweepSelector&, store::Mode);
// The same for reading a trial of this id, or its beginning: where no sweep is named and the latest has no such trial,
// the latest rehearsal that has it.
Expected<Opened> open_sweep_of(const SweepSelector&, const std::string& trial);

// Stores the results that a run left in its spool when it died, without running anything (`resume --store-only`, `ingest`).
int store_left_results(Io&, const SweepSelector&);

// Asks the person at the terminal, "WHY. Go on? [y/N]"; false: no. REQUIRES: in.
bool goes_on(Io&, const std::string& why);

// Error: the file is a SQLite database, which no output replaces: its results would be lost.
Expected<void> check_output(const std::string& path);

// Writes to a file atomically, or to out when path is empty or "-". Refuses what check_output() does.
Expected<void> write_output(Io&, const std::string& path, const std::string& bytes);

// "a,b , c" -> {"a","b","c"}
std::vector<std::string> split_list(const std::string&);

}  // namespace sweep::cli
