#include <fmt/format.h>

#include <ostream>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/launch_options.h"
#include "orchestrator/driver/gpu_hours.h"

namespace sweep::cli {
namespace {

using driver::SweepDriver;

// A sweep or a grid as words of the next command, as they work from this folder.
std::string as_words(const std::string& name, const SweepDriver& driver) {
  const bool usual = driver.db() == std::filesystem::absolute("sweep.db");
  return shell_word(name) + (usual ? "" : " --db " + shell_word(driver.db().string()));
}

std::string how_to_ask(const std::string& sweep, driver::Finish finish) {
  const bool answered = finish == driver::Finish::kAnswered;
  return fmt::format("`sweep best {0}`, `sweep heatmap {0} -o map.html`, `sweep {2} {0}{1}`", sweep,
                     answered ? " -o report.html" : "", answered ? "report" : "status");
}

std::string next_of(SweepDriver& driver, const run::RunEnd& end, driver::Finish finish) {
  const std::string sweep = as_words(driver.sweep().name, driver);
  if (end.end == run::End::kDone) return how_to_ask(sweep, finish);
  if (end.end == run::End::kLeft) return fmt::format("`sweep status {}`", sweep);
  if (end.used_up)
    return driver::past_limit(*end.used_up, driver.store(), driver.sweep(),
                              [&](const std::string& name) { return as_words(name, driver); });
  return fmt::format("`sweep resume {}`", sweep);
}

}  // namespace

int finish(Io& io, SweepDriver& driver, const run::RunEnd& end) {
  const auto finish = driver.finish(end);
  if (!finish) return refuse(io, finish.error());
  if (end.end == run::End::kInterrupted || end.end == run::End::kLeft)
    io.err << answers::safe_text(end.why) << '\n';
  else if (end.end != run::End::kDone)
    io.err << "sweep: " << answers::safe_text(end.why) << '\n';
  io.err << answers::safe_text("next: " + next_of(driver, end, *finish)) << '\n';
  return exit_code_of(*finish);
}

}  // namespace sweep::cli
