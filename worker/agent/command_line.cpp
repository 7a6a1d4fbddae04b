#include "worker/agent/command_line.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "runtime/attempt_token.h"
#include "runtime/rank_process.h"
#include "schema/agent_call.h"
#include "schema/codec.h"
#include "schema/rank_launch.h"
#include "worker/agent/evidence/node_probe.h"
#include "worker/agent/net/bridge.h"
#include "worker/agent/node/agent.h"
#include "worker/agent/node/node_agent.h"
#include "worker/agent/process/process.h"
#include "worker/command/command_rank.h"

namespace sweep::agent {
namespace {

struct Arguments {
  Options options;
  bool no_zygote = false, no_namespace = false, join = false, detach = false;
};

void set_up_log() {
  spdlog::set_default_logger(spdlog::stderr_logger_st("agent"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  spdlog::flush_on(spdlog::level::info);
}

// The facts of this machine, and what each path is to it, for `sweep doctor`.
int probe(char** paths, char** end) {
  const auto nvml = Nvml::load();
  std::cout << probe_machine(nvml.get(), {paths, end}) << std::endl;
  return std::cout ? 0 : 1;
}

Expected<int> serve(Options& options, const Arguments& asked, char** argv) {
  std::optional<Join> join;
  if (asked.join) {
    SWEEP_GET(join, read_join(STDIN_FILENO));
    options.node = join->node;
  }
  SWEEP_TRY(mark_self(options, join, argv));
  if (!asked.detach && (join || options.peers == Peers::kLauncher))
    options.ready_fd = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  SWEEP_TRY(lock_spool(options));
  if (asked.detach) {
    SWEEP_GET(options.ready_fd, detach(options));
  }
  const auto inside = enter_sandbox(options);  // everything below runs in the inner process
  if (!inside) return tl::unexpected(inside.error());
  if (join) return NodeAgent(options, *inside).run(*join);
  SWEEP_GET(auto mailbox, Mailbox::open(options.spool, options.allocation, options.incarnation));
  return Agent(options, *inside, std::move(mailbox)).run();
}

int run(Arguments& asked, char** argv) {
  Options& options = asked.options;
  options.spool = std::filesystem::absolute(options.spool);
  if (!options.rank_program.empty()) options.rank_program = std::filesystem::absolute(options.rank_program);
  options.zygote = !asked.no_zygote && !options.rank_program.empty();
  options.pid_namespace = !asked.no_namespace;
  set_up_log();
  const auto code = serve(options, asked, argv);
  if (code) return *code;
  spdlog::error("{}", code.error().message);
  tell_launcher(options.ready_fd, not_ready(code.error().message));
  return 1;
}

void add_options(CLI::App& app, Arguments& a) {
  Options& o = a.options;
  app.add_option("--spool", o.spool, "the allocation's folder, or this node's of it")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--allocation", o.allocation, "the allocation's id")->required();
  app.add_option("--incarnation", o.incarnation, "which agent of the allocation this is")->required();
  app.add_option("--slots", o.slots, "ranks that may run at once on a node")
      ->required()
      ->check(CLI::PositiveNumber);
  app.add_option("--rank-program", o.rank_program, "sweep-rank; not given: every trial runs a command")
      ->check(CLI::ExistingFile);
  app.add_option("--parent-pid", o.parent_pid, "the orchestrator: the agent ends when it does");
  app.add_option("--nodes", o.nodes, "nodes of the allocation")->check(CLI::Range(1, 65536));
  app.add_option("--peers", o.peers, "who starts the agents of the other nodes")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Peers>{{"slurm", Peers::kSlurm}, {"launcher", Peers::kLauncher}}));
  app.add_option("--interface", o.interface,
                 "network interface, or its address, for the agents and the ranks");
  app.add_option("--lease", o.lease_s, "seconds of silence after which agents give each other up")
      ->check(CLI::Range(0.5, 3600.0));
  app.add_option("--idle-limit", o.idle_limit_s, "seconds without work after which it leaves; 0: none");
  app.add_option("--contact-limit", o.contact_limit_s,
                 "seconds without an orchestrator after which all is ended");
  app.add_option(
      kTimeLimitOption, o.time_limit_s,
      "seconds until the allocation ends: nothing is started that cannot end before, and what still "
      "runs then is ended");
  app.add_flag("--bind", o.bind, "the ranks of attempts side by side keep to cores of their own");
  app.add_option("--screen", o.screen, "look at the nodes first; what stands out is shown, or gets no work")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Screen>{{"show", Screen::kShow}, {"leave_out", Screen::kLeaveOut}}));
  app.add_flag("--join", a.join, "serve one node; where to join is read from standard input");
  app.add_flag("--detach", a.detach, "print one line once it serves, and go on in the background");
  app.add_flag("--no-zygote", a.no_zygote, "execute every rank instead of forking it from a warm one");
  app.add_flag("--no-namespace", a.no_namespace, "no PID namespace of its own")
      ->envname("SWEEP_NO_NAMESPACE");
}

// Words behind the first one, which says what to do.
int main_bridge(int argc, char** argv) {
  std::filesystem::path spool;
  CLI::App app{"Carries a spool's mailbox over standard input and output.", "sweep-agent bridge"};
  app.add_option("--spool", spool, "the allocation's folder")->required()->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  return run_bridge(std::filesystem::absolute(spool), STDIN_FILENO, STDOUT_FILENO);
}

// Ends an allocation's processes on this machine, agents and all, where its orchestrator is not their parent.
int main_end(int argc, char** argv) {
  std::filesystem::path spool;
  std::string allocation;
  bool show = false;
  CLI::App app{"Ends every process of an allocation on this machine.", "sweep-agent end"};
  app.add_option("--spool", spool, "the allocation's folder, or the node's")->required();
  app.add_option("--allocation", allocation, "the allocation's id")->required();
  app.add_flag("--show", show, "a line of JSON for each; nothing is ended");
  CLI11_PARSE(app, argc, argv);
  const auto key = allocation_key(allocation, std::filesystem::absolute(spool));
  if (show) {
    for (const auto& process : marked_processes(key, true))
      std::cout << nlohmann::json{{"pid", process.pid}, {"command", process.command}}.dump(
                       -1, ' ', true, nlohmann::json::error_handler_t::replace)
                << '\n';
    return std::cout.flush() ? 0 : 1;
  }
  std::cout << nlohmann::json{{"ended", end_marked_processes(key, true)}}.dump() << std::endl;
  return marked_processes(key, true).empty() ? 0 : 1;
}

int main_run(int argc, char** argv, char** whole_argv) {
  Arguments asked;
  CLI::App app{"Serves an allocation of sweep on its nodes: starts, watches and ends ranks.",
               "sweep-agent run"};
  app.footer("sweep-agent --probe [PATH...] prints the facts of this machine as JSON and serves nothing.");
  add_options(app, asked);
  CLI11_PARSE(app, argc, argv);
  return run(asked, whole_argv);
}

// A rank that runs a trial's command.
int main_command(int argc, char** argv) {
  std::string text;
  CLI::App app{"Runs a trial's command as one rank.", "sweep-agent command"};
  app.add_option("--launch", text, "RankLaunch as JSON")->required();
  CLI11_PARSE(app, argc, argv);
  const auto launch = from_text<RankLaunch>(text);
  const auto ready = launch ? become_rank(*launch) : tl::unexpected(launch.error());
  if (ready) return command::run_command_rank(*launch);
  std::cerr << "sweep-agent command: " << ready.error().message << "\n";
  return 2;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "--probe") return probe(argv + 2, argv + argc);
  if (what == "bridge") return main_bridge(argc - 1, argv + 1);
  if (what == "command") return main_command(argc - 1, argv + 1);
  if (what == "end") return main_end(argc - 1, argv + 1);
  return what == "run" ? main_run(argc - 1, argv + 1, argv) : main_run(argc, argv, argv);
}

}  // namespace sweep::agent
