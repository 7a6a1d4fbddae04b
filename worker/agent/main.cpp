// sweep-agent: serves one allocation on this node until it is told to finish. Started by a launcher, not by
// hand.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string_view>

#include "worker/agent/agent.h"
#include "worker/agent/node_probe.h"

namespace {

using namespace sweep::agent;

void set_up_log() {
  spdlog::set_default_logger(spdlog::stderr_logger_st("agent"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
}

int serve(const Options& options) {
  const auto inside = enter_enclosure(options);  // from here on in the inner process
  if (!inside) {
    spdlog::error("{}", inside.error().message);
    return 1;
  }
  auto mailbox = Mailbox::open(options.spool, options.allocation, options.incarnation);
  if (!mailbox) {
    spdlog::error("{}", mailbox.error().message);
    return 1;
  }
  return Agent(options, *inside, std::move(*mailbox)).run();
}

// The facts of this machine, for `sweep doctor`.
int probe() {
  const auto nvml = Nvml::load();
  std::cout << probe_node(nvml.get()).facts << std::endl;
  return std::cout ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--probe") return probe();
  Options options;
  bool no_zygote = false, no_namespace = false;
  CLI::App app{"Serves one allocation of sweep on this node: starts, watches and ends ranks.", "sweep-agent"};
  app.add_option("--spool", options.spool, "the allocation's folder")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--allocation", options.allocation, "the allocation's id")->required();
  app.add_option("--incarnation", options.incarnation, "which agent of the allocation this is")->required();
  app.add_option("--slots", options.slots, "ranks that may run at once")
      ->required()
      ->check(CLI::PositiveNumber);
  app.add_option("--rank-program", options.rank_program, "sweep-rank")->required()->check(CLI::ExistingFile);
  app.add_option("--parent-pid", options.parent_pid, "the orchestrator: the agent ends when it does");
  app.add_option("--idle-limit", options.idle_limit_s,
                 "seconds without work and without word after which the agent ends; absent: it waits")
      ->check(CLI::NonNegativeNumber);
  app.footer("sweep-agent --probe prints the facts of this machine as JSON and serves nothing.");
  app.add_flag("--no-zygote", no_zygote, "execute every rank instead of forking it from a warm one");
  app.add_flag("--no-namespace", no_namespace, "no PID namespace of its own");
  CLI11_PARSE(app, argc, argv);
  options.spool = std::filesystem::absolute(options.spool);
  options.rank_program = std::filesystem::absolute(options.rank_program);
  options.zygote = !no_zygote;
  options.pid_namespace = !no_namespace;
  set_up_log();
  return serve(options);
}
