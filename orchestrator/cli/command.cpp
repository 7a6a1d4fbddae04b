#include "orchestrator/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/files.h"
#include "base/number_in.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/run/retry_policy.h"
#include "schema/rehearsal.h"
#include "schema/spool.h"

namespace sweep::cli {
namespace {

using nlohmann::json;

// One line on standard error: the kind, the message, and of the rest what is known.
void print_error(Io& io, const Error& error) {
  json told = {{"kind", word_of(error.kind)}, {"message", error.message}};
  if (!error.subject.empty()) told["subject"] = error.subject;
  if (!error.file.empty()) told["file"] = error.file;
  if (error.line > 0) told["line"] = error.line;
  if (error.column > 0) told["column"] = error.column;
  io.err << json{{"error", told}}.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
}

}  // namespace

void print_document(Io& io, const json& document) {
  io.out << document.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
}

int refuse(Io& io, const Error& error) {
  if (io.json)
    print_error(io, error);
  else
    io.err << "sweep: " << answers::safe_lines(error.message) << '\n';
  return error.kind == ErrorKind::kDiskFull ? kExitDiskFull : kBadInput;
}

std::function<void(const std::string&)> progress_to(Io& io, bool quiet) {
  return [&io, quiet](const std::string& line) {
    if (!quiet) io.err << answers::safe_text(line) << '\n';
  };
}

void add_db(CLI::App& command, SweepSelector& where) {
  command.add_option("--db", where.db, "the results database (SQLite file)")
      ->envname("SWEEP_DB")
      ->capture_default_str()
      ->type_name("FILE");
}

void add_sweep(CLI::App& command, SweepSelector& where) {
  command.add_option("SWEEP", where.sweep, "name of the sweep; absent: the latest of the database");
}

void add_json(CLI::App& command, const std::string& sentence) {
  command.add_flag_function(
      "--json", [](auto) {}, sentence);
}

Expected<void> database_is_there(const std::string& db) {
  std::error_code ec;
  if (std::filesystem::exists(db, ec)) return {};
  return fail(ErrorKind::kNotFound, db,
              fmt::format("{}: no such database; `sweep run GRID --db {}` makes one", db, db));
}

bool goes_on(Io& io, const std::string& why) {
  io.err << why << ". Go on? [y/N] " << std::flush;
  std::string answer;
  std::getline(*io.in, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Expected<Opened> open_sweep(const SweepSelector& where, store::Mode mode) {
  SWEEP_TRY(database_is_there(where.db));
  SWEEP_GET(auto store, run::open_store(where.db, mode));
  SWEEP_GET(auto sweep, store->find_sweep(where.sweep));
  return Opened{std::move(store), std::move(sweep)};
}

Expected<Opened> open_sweep_of(const SweepSelector& where, const std::string& trial) {
  auto opened = open_sweep(where, store::Mode::kReadOnly);
  if (!opened || where.sweep) return opened;
  const auto lacks = [&](const store::SweepRow& sweep) {
    const auto found = opened->store->find_trial(sweep.id, trial);
    return !found && found.error().kind == ErrorKind::kNotFound;
  };
  if (!lacks(opened->sweep)) return opened;
  SWEEP_GET(auto all, opened->store->sweeps());
  const auto rehearsal = std::find_if(all.rbegin(), all.rend(), [&](const store::SweepRow& sweep) {
    return is_rehearsal(sweep.name) && !lacks(sweep);
  });
  if (rehearsal != all.rend()) opened->sweep = std::move(*rehearsal);
  return opened;
}

namespace {
CLI::Validator number_check(const char* name, const char* takes, bool (*fits)(double)) {
  return {[=](const std::string& text) {
            const auto number = number_in<double>(text);
            return number && fits(*number) ? std::string() : fmt::format("'{}': it takes {}", text, takes);
          },
          name};
}
}  // namespace

CLI::Validator above_zero() {
  return number_check("POSITIVE", "a number above 0", [](double x) { return x > 0; });
}

CLI::Validator not_negative() {
  return number_check("NONNEGATIVE", "a number of 0 or more", [](double x) { return x >= 0; });
}

Expected<void> check_output(const std::string& path) {
  constexpr std::string_view kDatabase("SQLite format 3\0", 16);
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec) || files::read_from(path, 0, kDatabase.size()) != kDatabase)
    return {};
  return fail(
      ErrorKind::kRefused, path,
      fmt::format("'{}' is a database, and what is in it would be lost; name another file to write to "
                  "(--db names the database to read)",
                  path));
}

Expected<void> write_output(Io& io, const std::string& path, const std::string& bytes) {
  if (!path.empty() && path != "-") {
    SWEEP_TRY(check_output(path));
    return files::write_output(path, bytes);
  }
  io.out << bytes << std::flush;
  return {};
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from <= list.size();) {
    const auto comma = std::min(list.find(',', from), list.size());
    const auto first = list.find_first_not_of(' ', from);
    if (first < comma) words.push_back(list.substr(first, list.find_last_not_of(' ', comma - 1) + 1 - first));
    from = comma + 1;
  }
  return words;
}

}  // namespace sweep::cli
