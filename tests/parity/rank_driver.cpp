#include "tests/parity/rank_driver.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/files.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::testing {
namespace {

namespace fs = std::filesystem;
const std::string kProgram = std::string(SWEEP_BIN_DIR) + "/sweep-rank";

[[noreturn]] void give_up(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

[[noreturn]] void exec_program(const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(kProgram.c_str())};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(kProgram.c_str(), argv.data());
  _exit(127);
}

std::vector<RankRecord> records_of(const AttemptFiles& files, const std::vector<pid_t>& pids) {
  std::vector<int> statuses;
  for (const pid_t pid : pids) statuses.push_back(wait_for(pid));
  std::vector<RankRecord> records;
  for (std::size_t rank = 0; rank < pids.size(); ++rank) {
    const auto record = files.record(static_cast<i64>(rank));
    if (statuses[rank] != 0 || !record) {
      throw std::runtime_error("rank " + std::to_string(rank) + " ended with status " +
                               std::to_string(statuses[rank]) +
                               ", its log: " + files.log(static_cast<i64>(rank)));
    }
    records.push_back(*record);
  }
  return records;
}

std::string read_whole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Folder::Folder(const std::string& parent) {
  std::string name = parent + "/sweep_parity_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) give_up("cannot make a folder in " + parent);
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

AttemptFiles::AttemptFiles(const Attempt& attempt)
    : attempt_(attempt), spool_(fs::temp_directory_path().string()), rendezvous_("/dev/shm") {
  const auto written = files::write_atomically(spool::attempt_file(spool_.path()), dump(to_json(attempt)));
  if (!written) throw std::runtime_error(written.error().message);
  for (i64 rank = 0; rank < attempt.trial.world(); ++rank) {
    std::ofstream(spool::rank_progress(spool_.path(), rank)) << std::string(sizeof(ProgressPage), '\0');
  }
}

RankLaunch AttemptFiles::launch(i64 rank) const {
  RankLaunch launch;
  launch.attempt_dir = spool_.path();
  launch.attempt_file = spool::attempt_file(spool_.path());
  launch.rendezvous_dir = rendezvous_.path();
  launch.rank = launch.local_rank = rank;
  launch.world = attempt_.trial.world();
  launch.agent_pid = getpid();
  return launch;
}

Expected<RankRecord> AttemptFiles::record(i64 rank) const {
  return files::read(spool::rank_record(spool_.path(), rank))
      .and_then([](const std::string& bytes) { return parse_json(bytes); })
      .and_then([](const nlohmann::json& json) { return from_json<RankRecord>(json); });
}

std::string AttemptFiles::log(i64 rank) const {
  return read_whole(spool::rank_log(spool_.path(), rank));
}

std::uint64_t AttemptFiles::steps_begun(i64 rank) const {
  const std::string bytes = read_whole(spool::rank_progress(spool_.path(), rank));
  std::uint64_t steps = 0;
  if (bytes.size() == sizeof(ProgressPage))
    std::memcpy(&steps, bytes.data() + offsetof(ProgressPage, step), sizeof(steps));
  return steps;
}

ZygoteProcess::ZygoteProcess() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // ranks are adopted by this process, as by the agent
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) give_up("socketpair");
  pid_ = fork();
  if (pid_ == 0) {
    if (ends[1] == 3) {
      fcntl(3, F_SETFD, 0);
    } else {
      dup2(ends[1], 3);
    }
    exec_program({"zygote"});
  }
  close(ends[1]);
  channel_ = ends[0];
  std::array<char, 4096> ready{};
  if (recv(channel_, ready.data(), ready.size(), 0) <= 0) give_up("the zygote said nothing");
}

ZygoteProcess::~ZygoteProcess() {
  if (channel_ >= 0) close_and_wait();
}

std::string ZygoteProcess::ask(const std::string& message) {
  std::array<char, 65536> answer{};
  if (send(channel_, message.data(), message.size(), MSG_NOSIGNAL) < 0) give_up("send to the zygote");
  const ssize_t n = recv(channel_, answer.data(), answer.size(), 0);
  return {answer.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

Expected<pid_t> ZygoteProcess::start(const RankLaunch& launch) {
  const auto answer = parse_json(ask(dump(to_json(launch))));
  if (!answer) return tl::unexpected(answer.error());
  if (!answer->contains("pid")) return fail(answer->dump());
  return (*answer)["pid"].get<pid_t>();
}

int ZygoteProcess::close_and_wait() {
  close(channel_);
  channel_ = -1;
  return wait_for(pid_);
}

pid_t start_by_exec(const RankLaunch& launch) {
  const std::string json = dump(to_json(launch));
  const pid_t pid = fork();
  if (pid == 0) exec_program({"run", "--launch", json});
  return pid;
}

int wait_for(pid_t pid) {
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::vector<RankRecord> run_by_exec(const Attempt& attempt) {
  const AttemptFiles files(attempt);
  std::vector<pid_t> pids;
  for (i64 rank = 0; rank < attempt.trial.world(); ++rank) pids.push_back(start_by_exec(files.launch(rank)));
  return records_of(files, pids);
}

std::vector<RankRecord> run_by_zygote(const Attempt& attempt, ZygoteProcess& zygote) {
  const AttemptFiles files(attempt);
  std::vector<pid_t> pids;
  for (i64 rank = 0; rank < attempt.trial.world(); ++rank) {
    const auto pid = zygote.start(files.launch(rank));
    if (!pid) throw std::runtime_error(pid.error().message);
    pids.push_back(*pid);
  }
  return records_of(files, pids);
}

Output run_program(const std::vector<std::string>& arguments, const std::string& input) {
  const Folder folder(fs::temp_directory_path().string());
  const std::string in = folder.path() + "/in", out = folder.path() + "/out", err = folder.path() + "/err";
  std::ofstream(in) << input;
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(open(in.c_str(), O_RDONLY), 0);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2);
    exec_program(arguments);
  }
  const int status = wait_for(pid);
  return {status, read_whole(out), read_whole(err)};
}

Attempt small_attempt(i64 dp) {
  Attempt attempt;
  attempt.id = 7;
  Trial& trial = attempt.trial;
  trial.spec.layers = 2;
  trial.spec.hidden_size = 64;
  trial.spec.heads = 4;
  trial.spec.kv_heads = 2;
  trial.spec.head_dim = 16;
  trial.spec.intermediate_size = 160;
  trial.spec.vocab_size = 301;
  trial.seq_len = 32;
  trial.micro_batch_size = 2;
  trial.gpus_per_node = trial.dp = dp;
  trial.global_batch_size = 2 * dp;
  attempt.measure = {1, 2, 2};
  return attempt;
}

i64 dry_run_peak(const Trial& trial) {
  const Output output = run_program({"dry-run", "--backend", "cpu"}, dump(to_json(trial)) + "\n");
  if (output.status != 0) throw std::runtime_error("sweep-rank dry-run: " + output.err);
  return nlohmann::json::parse(output.out).at("peak_rank_bytes").get<i64>();
}

}  // namespace sweep::testing
