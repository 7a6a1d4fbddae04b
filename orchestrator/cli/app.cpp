#include "orchestrator/cli/app.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <sstream>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/standard_output.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

int terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

// The commands in the order and under the headings of `sweep --help`.
struct CommandGroup {
  const char* heading;
  std::vector<void (*)(Registry)> add;
};
std::vector<CommandGroup> command_groups() {
  return {
      {"Before you run",
       {add_init, add_plan, add_predict, add_simulate, add_choose, add_suggest, add_replay}},
      {"Run",
       {add_run, add_wrap, add_status, add_stop, add_resume, add_confirm, add_logs, add_ingest, add_clean}},
      {"Answers",
       {add_best, add_heatmap, add_report, add_table, add_compare, add_explain, add_list, add_query,
        add_serve}},
      {"Exchange", {add_export, add_import, add_merge, add_backup, add_delete}},
      {"Machines", {add_doctor, add_selftest, add_calibrate, add_models, add_hardware}},
      {"This program", {add_completion, add_manual}}};
}

std::vector<CLI::App*> all_commands(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

void add_commands(Registry registry) {
  std::size_t done = 0;
  for (const auto& group : command_groups()) {
    for (const auto add : group.add) add(registry);
    const auto commands = all_commands(registry.app);
    for (; done < commands.size(); ++done) commands[done]->group(group.heading);
  }
}

// A first word that is no command, with the nearest one.
std::optional<Error> unknown_command(const CLI::App& app, std::span<const std::string> words) {
  if (words.empty() || words.front().starts_with('-')) return std::nullopt;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::ranges::find(names, words.front()) != names.end()) return std::nullopt;
  const auto close = shape::nearest(words.front(), names);
  return Error{fmt::format("'{}' is not a command{}; `sweep --help` lists them", words.front(),
                           close ? fmt::format("; did you mean '{}'?", *close) : ""),
               ErrorKind::kUnknownName, words.front()};
}

bool has_json(std::span<const std::string> words) {
  const auto own = std::ranges::find(words, "--");  // words after it are another program's
  return std::find(words.begin(), own, "--json") != own;
}

ErrorKind kind_of(const CLI::ParseError& error) {
  switch (static_cast<CLI::ExitCodes>(error.get_exit_code())) {
    case CLI::ExitCodes::ExtrasError:
      return ErrorKind::kUnknownName;
    case CLI::ExitCodes::RequiredError:
    case CLI::ExitCodes::RequiresError:
    case CLI::ExitCodes::ArgumentMismatch:
      return ErrorKind::kMissing;
    case CLI::ExitCodes::ExcludesError:
      return ErrorKind::kConflict;
    default:
      return ErrorKind::kInvalidValue;
  }
}

std::string footer() {
  std::string out = "Exit codes:\n";
  for (const auto& [code, meaning] : kExitCodes) out += fmt::format("  {:>3}  {}\n", code, meaning);
  return out + "Start here: sweep plan GRID, then sweep run GRID, then sweep best.";
}

// A failure to write changes the exit code, unless that names a greater fault.
int checked(Io& io, const StandardOutput& output, int code) {
  io.out.flush();
  if (output.error() == 0 || output.error() == EPIPE) return code;
  const int told =
      refuse(io, {fmt::format("standard output cannot be written ({}); what was to be printed is incomplete",
                              std::strerror(output.error())),
                  ErrorKind::kUnwritable});
  return code == kExitDiskFull || code == kInterrupted ? code : told;
}

}  // namespace

int run(Io& io, std::span<const std::string> words) {
  io.json = has_json(words);
  CLI::App app("Benchmark sweeps of distributed training configurations.", "sweep");
  app.set_version_flag("--version", std::string(kVersion) + " (" + kBuild + ")");
  app.require_subcommand(1);
  Action chosen;
  app.footer("The help of `sweep` itself lists the exit codes.");  // each command takes it over
  add_commands({app, io, chosen});
  app.footer(footer());
  if (const auto unknown = unknown_command(app, words)) return refuse(io, *unknown);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    return chosen ? chosen() : kBadInput;
  } catch (const CLI::ParseError& e) {
    std::ostringstream unused;
    if (app.exit(e, io.out, unused) == 0) return kAnswered;
    const auto given = app.get_subcommands();
    return refuse(io, {fmt::format("{}; `sweep {}--help` shows what can be given", e.what(),
                                   given.empty() ? "" : given.front()->get_name() + " "),
                       kind_of(e)});
  } catch (const std::exception& e) {
    return refuse(io, {std::string("internal fault: ") + e.what()});
  }
}

int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // beyond `ulimit -f` a write fails then, as on a full disk
  fill_closed_descriptors();
  StandardOutput output(STDOUT_FILENO);
  std::ostream out(&output);
  Io io{out, std::cerr, ::isatty(STDOUT_FILENO) == 1, ::isatty(STDERR_FILENO) == 1, terminal_width()};
  if (io.out_is_terminal) out << std::unitbuf;
  std::ostream* const before = std::cerr.tie(&out);  // on one terminal both keep their order
  if (::isatty(STDIN_FILENO) == 1 && io.err_is_terminal) io.in = &std::cin;
  const int code =
      checked(io, output, run(io, std::vector<std::string>(argv + std::min(argc, 1), argv + argc)));
  std::cerr.tie(before);
  return code;
}

}  // namespace sweep::cli
