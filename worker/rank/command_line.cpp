#include "worker/rank/command_line.h"

#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "bench_kernels/step/check.h"
#include "bench_kernels/step/dry_run.h"
#include "runtime/rank_process.h"
#include "schema/codec.h"
#include "schema/rank_launch.h"
#include "schema/version.h"
#include "worker/rank/run_rank.h"

namespace sweep::rank {
namespace {

constexpr int kBadInput = 2;
constexpr int kZygoteChannel = 3;

int refuse(const std::string& sentence) {
  std::cerr << "sweep-rank: " << sentence << "\n";
  return kBadInput;
}

int run_launch(const std::string& launch_json) {
  const auto launch = from_text<RankLaunch>(launch_json);
  if (!launch) return refuse("--launch is no RankLaunch: " + launch.error().message);
  const auto ready = become_rank(*launch);
  if (!ready) return refuse(ready.error().message);
  prepare_process();
  return run_rank(*launch);
}

// Forked ranks need a parent that has run no parallel region.
Expected<void> check(const std::string& checkpoint, const std::string& tokens, const Trial& layout) {
  if (layout.world() > 1) at::set_num_threads(1);
  SWEEP_GET(const auto answer, step::check(checkpoint, tokens, layout));
  std::cout << answer << "\n" << std::flush;  // what is buffered would be forked too
  return {};
}

template <class Choice>
void add_choice(CLI::App& command, const char* option, Choice& field, const char* text,
                std::vector<std::string> words) {
  command
      .add_option_function<std::string>(
          option, [&field](const std::string& word) { field = *choice_from<Choice>(word); }, text)
      ->check(CLI::IsMember(std::move(words)));
}

// The axes by which a check can be laid out over ranks of this machine.
void add_layout(CLI::App& command, Trial& t) {
  const CLI::Range degree(1, 64);
  command.add_option("--tp", t.tp, "Tensor-parallel degree")->check(degree);
  command.add_option("--pp", t.pp, "Pipeline-parallel degree")->check(degree);
  command.add_option("--cp", t.cp, "Context-parallel degree")->check(degree);
  command.add_option("--dp", t.dp, "Data-parallel degree")->check(degree);
  command.add_option("--ep", t.ep, "Expert-parallel degree")->check(degree);
  command.add_option("--zero", t.zero, "ZeRO stage")->check(CLI::Range(0, 3));
  command
      .add_option("--vocab-multiple", t.vocab_multiple, "Pad the token tables to a multiple of this times tp")
      ->check(CLI::Range(1, 65'536));
  command.add_option("--lora-rank", t.lora_rank, "Rank of the adapters in adapter_model.safetensors")
      ->check(CLI::Range(0, 65'536));
  command.add_option("--lora-alpha", t.lora_alpha, "Their alpha")->check(CLI::Range(1, 1'000'000));
  add_choice(command, "--lora-targets", t.lora_targets, "The layers that have them",
             {"query_value", "attention", "mlp", "all_linear"});
  add_choice(command, "--quantize-base", t.quantize_base,
             "The type that the layers beside adapters are kept in", {"none", "nf4"});
  add_choice(command, "--precision", t.precision, "The types that are computed in", {"fp32", "bf16"});
  command
      .add_option("--encoder-seq-len", t.encoder_seq_len,
                  "Tokens of the encoder's sequences; 0: the lists' own")
      ->check(CLI::Range(0, 1'000'000));
  command.add_flag("--sp", t.sp, "Sequence parallelism beside tp");
  add_choice(command, "--cp-comm-type", t.cp_comm_type, "Form of context parallelism",
             {"ring", "all_to_all"});
}

// The lines of a file that has some.
Expected<std::vector<std::string>> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (!file.is_open() || file.bad()) return fail(path + ": cannot be read");
  if (lines.empty()) return fail(path + ": holds no layout");
  return lines;
}

Expected<Trial> layout_from(const std::string& flags, const Trial& common) {
  Trial layout = common;
  CLI::App line("One layout of a check");
  add_layout(line, layout);
  try {
    line.parse(flags);
  } catch (const CLI::ParseError& error) {
    return fail("'" + flags + "': " + error.what());
  }
  return layout;
}

// Reads the flags of a layout from each line and prints one line of JSON for each, in order; the first that is refused
// ends it. `common`: what the command line says of all of them.
Expected<void> check_each(const std::string& checkpoint, const std::string& tokens, const Trial& common,
                          const std::string& layouts) {
  SWEEP_GET(const auto lines, lines_of(layouts));
  at::set_num_threads(1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto done = layout_from(lines[i], common).and_then([&](const Trial& layout) {
      return check(checkpoint, tokens, layout);
    });
    if (!done) return fail(layouts + ":" + std::to_string(i + 1) + ": " + done.error().message);
  }
  return {};
}

// Trials as JSON lines in, one JSON line out for each, in order. A trial that the step refuses gets {"trial":
// id, "error": sentence}; the first line that is no trial ends it.
int dry_run(const std::string& trials, bool cuda, bool tensors) {
  std::ifstream file;
  if (!trials.empty()) file.open(trials);
  if (!file) return refuse(trials + ": cannot be read");
  std::istream& in = trials.empty() ? std::cin : file;
  std::string line;
  for (i64 number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const auto trial =
        parse_json(line).and_then([](const nlohmann::json& json) { return from_json<Trial>(json); });
    if (!trial)
      return refuse("line " + std::to_string(number) + " of standard input: " + trial.error().message);
    const auto answer =
        step::dry_run_line(*trial, cuda ? step::Backend::kCuda : step::Backend::kCpu, tensors);
    std::cout << (answer ? *answer : to_text(DryRunAnswer{trial_id(*trial), answer.error().message})) << "\n"
              << std::flush;
  }
  return 0;
}

// The text of RankFacts. Loads no GPU library.
std::string facts() {
  std::error_code ec;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ec);
  const bool plugin = !ec && std::filesystem::exists(self.parent_path() / "libsweep_cuda.so", ec);
  RankFacts out{kVersion, kBuild, TORCH_VERSION, SWEEP_TORCH_CUDA, {}, plugin};
  std::istringstream words(SWEEP_TORCH_ARCHS);
  for (std::string arch; words >> arch;) out.archs.push_back(arch);
  return to_text(out);
}

int serve() {
  prepare_process();
  return serve_zygote(kZygoteChannel);
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app("One training process of a sweep: started by sweep-agent, or by hand to check and to predict.",
               "sweep-rank");
  app.require_subcommand(1);
  int code = 0;
  std::string launch, checkpoint, tokens, layouts, backend = "cpu";
  auto* run_command = app.add_subcommand("run", "Run one rank of an attempt and write its record");
  run_command->add_option("--launch", launch, "RankLaunch as JSON")->required();
  run_command->callback([&] { code = run_launch(launch); });
  app.add_subcommand("zygote", "Stay loaded and fork ranks on request (on file descriptor 3)")->callback([&] {
    code = serve();
  });
  app.add_subcommand("facts", "Print the facts of this build as JSON")->callback([] {
    std::cout << facts() << "\n";
  });
  auto* check_command =
      app.add_subcommand("check", "Print loss and gradient norms of a Hugging Face checkpoint as JSON");
  check_command->add_option("--checkpoint", checkpoint, "Folder with config.json and model.safetensors")
      ->required();
  check_command->add_option("--tokens", tokens, "JSON file: a list of equally long token lists")->required();
  Trial layout;
  add_layout(*check_command, layout);
  check_command->add_option("--layouts", layouts,
                            "A file: on each line the flags of a layout; a line of JSON for each");
  check_command->callback([&] {
    const auto done =
        layouts.empty() ? check(checkpoint, tokens, layout) : check_each(checkpoint, tokens, layout, layouts);
    code = done ? 0 : refuse(done.error().message);
  });
  auto* dry_run_command = app.add_subcommand(
      "dry-run", "Read trials (JSON lines) from standard input, print their peak bytes per rank");
  dry_run_command->add_option("--backend", backend, "Whose kernels' saved tensors count")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  bool tensors = false;
  dry_run_command->add_flag("--tensors", tensors,
                            "Also print what lives at the peak of the fullest rank, by size");
  std::string trials;
  dry_run_command->add_option("--trials", trials, "A file of trials instead of standard input");
  dry_run_command->callback([&] { code = dry_run(trials, backend == "cuda", tensors); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    code = app.exit(error) == 0 ? 0 : kBadInput;
  }
  std::cout.flush();
  std::fflush(nullptr);
  return code;
}

}  // namespace sweep::rank
