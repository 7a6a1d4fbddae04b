#include "orchestrator/cli/app.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <sstream>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/report/format.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

int terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

void add_commands(Registry registry) {
  for (const auto add :
       {add_run,    add_resume,   add_plan,    add_explain,  add_simulate,   add_status,  add_stop,
        add_clean,  add_best,     add_heatmap, add_table,    add_report,     add_compare, add_query,
        add_export, add_import,   add_merge,   add_confirm,  add_serve,      add_logs,    add_ingest,
        add_doctor, add_selftest, add_models,  add_hardware, add_completion, add_manual})
    add(registry);
}

// A first word that is no command, with the nearest one.
std::optional<Error> unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return std::nullopt;
  const auto close = shape::nearest(argv[1], names);
  return Error{fmt::format("'{}' is not a command{}; `sweep --help` lists them", argv[1],
                           close ? fmt::format("; did you mean '{}'?", *close) : "")};
}

}  // namespace

int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  Io io{std::cout, std::cerr, ::isatty(STDOUT_FILENO) == 1, ::isatty(STDERR_FILENO) == 1, terminal_width()};
  if (::isatty(STDIN_FILENO) == 1 && io.err_is_terminal) io.in = &std::cin;
  CLI::App app("Benchmark sweeps of distributed training configurations.", "sweep");
  app.footer(
      "Exit codes: 0 every trial has a final answer, 1 any other outcome, 2 bad input, 3 a regression found "
      "by"
      " compare, 130 interrupted.\n"
      "Start here: sweep plan GRID, then sweep run GRID, then sweep best.");
  app.set_version_flag("--version", std::string(kVersion) + " (" + kBuild + ")");
  app.require_subcommand(1);
  Action chosen;
  add_commands({app, io, chosen});
  if (const auto unknown = unknown_command(app, argc, argv)) return refuse(io, *unknown);
  try {
    app.parse(argc, argv);
    return chosen ? chosen() : kBadInput;
  } catch (const CLI::ParseError& e) {
    std::ostringstream words;
    const int code = app.exit(e, io.out, words);
    io.err << report::safe_lines(words.str());
    return code == 0 ? kAnswered : kBadInput;
  } catch (const std::exception& e) {
    return refuse(io, {std::string("internal fault: ") + e.what()});
  }
}

}  // namespace sweep::cli
