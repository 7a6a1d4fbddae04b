// Process: the one way to start another program, and what is needed around it: find it on PATH, wait for it,
// learn of its end. A child inherits no descriptor but those that it is given, no signal mask, and no signal
// that this process ignores or handles. No shell is in between.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"

namespace sweep {

struct ChildProgram {
  // The process group that it runs in.
  enum class Group {
    kOurs,     // a terminal's Ctrl-C reaches it
    kJoin,     // the group of `leader`
    kNew,      // its own: kill(-pid) reaches it with its children
    kSession,  // a session of its own: it outlives the terminal
  };
  static constexpr int kInherit = -1;  // the descriptor of this process
  static constexpr int kNothing = -2;  // /dev/null

  std::vector<std::string> argv;
  std::filesystem::path program{};                        // empty: argv[0], looked up on PATH
  std::optional<std::vector<std::string>> environment{};  // NAME=VALUE; nullopt: that of this process
  std::filesystem::path folder{};                         // working folder; empty: that of this process
  int in = kNothing, out = kInherit, err = kInherit;      // descriptors that it gets as 0, 1 and 2
  // Descriptor that it gets as 3; kInherit: it has no 3.
  int extra = kInherit;
  Group group = Group::kOurs;
  pid_t leader = 0;
  bool dies_with_us = false;  // SIGKILL when the thread that started it ends
};

// Starts it. Error: it cannot be executed, with the reason; no process is left then.
Expected<pid_t> start_program(const ChildProgram&);

// Finds a program like execvp. nullopt: there is none of this name.
std::optional<std::filesystem::path> find_program(const std::string& name);

struct ProcessEnd {
  int code = -1;   // exit code; -1: a signal ended it
  int signal = 0;  // the signal that ended it
};
// Converts waitpid's status.
ProcessEnd end_of(int status);
// Waits for a child of this process.
ProcessEnd wait_for(pid_t child);

// A descriptor that becomes readable when the process ends. -1: errno says why.
int open_pidfd(pid_t process);

// Holds every signal of this thread back while it lives. For a fork: until the child has reset its handlers,
// they would act on what both processes share.
class SignalsHeld {
 public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

// Runs in the child of a fork: every signal but `ignored` does what it does by default, and none is held back.
void reset_signals(int ignored = 0);

}  // namespace sweep
