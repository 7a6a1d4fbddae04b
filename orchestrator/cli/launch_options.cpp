#include "orchestrator/cli/launch_options.h"

#include <string>

#include "orchestrator/driver/registry.h"

namespace sweep::cli {

CLI::Option* add_launcher_name(CLI::App& c, std::string& on, const std::string& description) {
  return c.add_option("--on", on, description)->check(CLI::IsMember(driver::launcher_names()));
}

void add_programs(CLI::App& c, driver::LaunchRequest& request) {
  c.add_option("--agent", request.agent, "the sweep-agent program; absent: beside sweep")->type_name("FILE");
  c.add_option("--rank", request.rank, "the sweep-rank program; absent: beside sweep")->type_name("FILE");
}

std::string absent(bool kept, const std::string& otherwise) {
  if (kept) return "; absent: as the sweep was run";
  return otherwise.empty() ? "" : "; absent: " + otherwise;
}

void add_rank_start(CLI::App& c, driver::LaunchRequest& request, bool kept) {
  c.add_option_function<std::string>(
       "--start", [&request](const std::string& word) { request.start = rank_start_from(word); },
       "how ranks start: zygote (forked, fast) or exec" + absent(kept))
      ->check(CLI::IsMember({"zygote", "exec"}))
      ->default_str(kept ? "" : "zygote");
}

void add_selftest_options(CLI::App& c, driver::SelfTestRequest& request) {
  add_launcher_name(c, request.launch.on, "where to run; absent: as `sweep run` would choose");
  c.add_option("--grid", request.grid, "a grid file whose launch section is used")->type_name("FILE");
  c.add_option("--jobid", request.launch.job, "use the nodes of this Slurm allocation")->check(above_zero());
  add_rank_start(c, request.launch);
  add_programs(c, request.launch);
}

int exit_code_of(driver::Finish finish) {
  switch (finish) {
    case driver::Finish::kAnswered:
      return kAnswered;
    case driver::Finish::kUnanswered:
      return kUnanswered;
    case driver::Finish::kInterrupted:
      break;
  }
  return kInterrupted;
}

}  // namespace sweep::cli
