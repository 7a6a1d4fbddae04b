#include "orchestrator/cli/app.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <new>
#include <ostream>
#include <sstream>
#include <streambuf>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
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
  return {{"Before you run",
           {add_init, add_plan, add_predict, add_simulate, add_choose, add_suggest, add_replay}},
          {"Run", {add_run, add_wrap, add_status, add_stop, add_resume, add_confirm, add_logs, add_clean}},
          {"Answers",
           {add_best, add_heatmap, add_report, add_table, add_compare, add_explain, add_list, add_query,
            add_serve}},
          {"Exchange", {add_export, add_import, add_merge, add_backup, add_delete}},
          {"Machines", {add_doctor, add_selftest, add_calibrate}},
          {"This program", {add_completion, add_manual}},
          {"", {add_ingest, add_models, add_hardware}}};  // earlier spellings, which --help leaves out
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

// The stream that commands write their data to. It remembers the first error of the descriptor and takes the rest
// without writing it, so that a command runs to its end and one place, run(), tells the error.
class StandardOutput : public std::streambuf {
 public:
  explicit StandardOutput(int fd) : fd_(fd) { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

  // errno of the first write that failed; 0: none did. EPIPE: the reader has seen enough, which is no error.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override {
    sync();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  int sync() override {
    for (const char* at = pbase(); error_ == 0 && at < pptr();) {
      const ssize_t n = ::write(fd_, at, static_cast<std::size_t>(pptr() - at));
      if (n >= 0)
        at += n;
      else if (errno != EINTR)
        error_ = errno;
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return 0;
  }

 private:
  int fd_;
  int error_ = 0;
  std::array<char, 1 << 16> buffer_;
};

// Opens /dev/null for each of the descriptors 0 to 2 that is closed, so that no file of ours gets its number.
// Writing to a standard output that was closed still fails.
void fill_closed_descriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0)
      ::open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);  // gets this very number
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
  } catch (const std::bad_alloc&) {
    return refuse(io,
                  {"this process gets no more memory; a plan holds every combination of its grid, so shorten "
                   "an axis or split the grid"});
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
  std::ostream* const before = std::cerr.tie(&out);  // both keep their order on one terminal
  if (::isatty(STDIN_FILENO) == 1 && io.err_is_terminal) io.in = &std::cin;
  const int code =
      checked(io, output, run(io, std::vector<std::string>(argv + std::min(argc, 1), argv + argc)));
  std::cerr.tie(before);
  return code;
}

}  // namespace sweep::cli
