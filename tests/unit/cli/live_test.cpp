#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "orchestrator/cli/progress_line.h"

namespace sweep::cli {
namespace {

run::Snapshot of(i64 running) {
  run::Snapshot out;
  out.counts.total = 9;
  out.counts.running = running;
  return out;
}

store::SweepRow night() {
  store::SweepRow out;
  out.name = "night";
  return out;
}

i64 lines(const std::ostringstream& text) {
  const std::string said = text.str();
  return std::count(said.begin(), said.end(), '\n');
}

TEST(ProgressLine, APipeGetsALineOnceAndTheLastOneAtTheEnd) {
  std::ostringstream out, err;
  Io io{out, err};
  ProgressLine live(io, night(), {}, false);
  for (int i = 0; i < 3; ++i) live.on_snapshot(of(9));
  EXPECT_EQ(lines(err), 1);
  live.on_snapshot(of(8));
  EXPECT_EQ(lines(err), 1) << "too soon";
  live.close();
  EXPECT_EQ(lines(err), 2);
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressLine, WhatWasSaidIsNotSaidAgainAtTheEnd) {
  std::ostringstream out, err;
  Io io{out, err};
  ProgressLine live(io, night(), {}, false);
  for (int i = 0; i < 2; ++i) live.on_snapshot(of(9));
  live.close();
  EXPECT_EQ(lines(err), 1) << err.str();
}

TEST(ProgressLine, QuietSaysNotesOnly) {
  std::ostringstream out, err;
  Io io{out, err};
  ProgressLine live(io, night(), {}, true);
  live.on_snapshot(of(9));
  live.on_note("a note");
  live.close();
  EXPECT_EQ(err.str(), "a note\n");
}

TEST(ProgressLine, WhatAMachineSaidDrawsNothingOnTheTerminal) {
  std::ostringstream out, err;
  Io io{out, err};
  ProgressLine live(io, night(), {}, false);
  live.on_note("lost: \x1b]0;owned\x07\x1b[2J\nsweep: all is well");
  Result result;
  result.outcome = Outcome::kCrash, result.reason = "\x1b[8mhidden\r\x9b";
  live.on_result({}, result);
  EXPECT_EQ(err.str().find_first_of("\x1b\x07\r\x9b"), std::string::npos) << err.str();
  EXPECT_EQ(lines(err), 2);
}

}  // namespace
}  // namespace sweep::cli
