// `sweep init -- LINE` makes a grid of a command line; the command stays the one that was given.
#include "orchestrator/interop/first_grid.h"

#include <gmock/gmock.h>

#include "orchestrator/grid/grid.h"
#include "orchestrator/interop/recipes.h"

namespace sweep::interop {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The grid of a line, whose words are separated by blanks.
std::string grid_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  const auto text = first_grid_of_command(words);
  EXPECT_TRUE(text);
  if (!text) return "";
  const auto read = grid::read_text(*text, "g.yaml", {1000, built_in_recipes()});
  EXPECT_TRUE(read) << read.error().message << "\n" << *text;
  return *text;
}

TEST(FirstGrid, ASecondOptionOfAnAxisKeepsItsValue) {
  const std::string text =
      grid_of("python train.py --batch_size 8 --micro_batch_size 4 --max_steps 100 --steps 5");
  EXPECT_THAT(text, HasSubstr("micro_batch_size: [8, 16]"));
  EXPECT_THAT(text, HasSubstr("my_micro_batch_size: {type: integer, default: 4}"));
  EXPECT_THAT(text, HasSubstr("my_steps: {type: integer, default: 5}"));
  EXPECT_THAT(grid_of("python train.py --bs 8 --mbs 8"), Not(HasSubstr("my_")));
}

TEST(FirstGrid, RanksAreThoseOfTheLauncher) {
  const std::string text =
      grid_of("torchrun --nproc_per_node 2 --max-restarts 3 train.py --num_nodes 4 --num_gpus=8");
  EXPECT_THAT(text, HasSubstr("  gpus_per_node: 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("  nodes: 4\n")));
  EXPECT_THAT(text, HasSubstr("num_gpus: {type: integer, default: 8}"));
  EXPECT_THAT(text, Not(HasSubstr("max_restarts")));
  EXPECT_THAT(text, HasSubstr("--max-restarts 3\n"));  // it says what it left out
  EXPECT_THAT(
      grid_of("python -m torch.distributed.run --nproc_per_node 2 train.py --nnodes 3"),
      HasSubstr("base:\n  hardware: cpu         # `sweep hardware` lists GPUs\n  gpus_per_node: 2\n#"));
}

TEST(FirstGrid, TheModuleGoesAfterPythonsOwnOptions) {
  const auto command = [](const std::string& line) {
    const std::string text = grid_of(line);
    const auto begin = text.find("  command: ") + 11;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(command("python3 -u -X dev train.py --name x"),
            R"(["python3", "-u", "-X", "dev", "-m", "sweep_trial", "train.py", "--name", "x"])");
  EXPECT_EQ(command("python3 -m mine.train"), R"(["python3", "-m", "sweep_trial", "-m", "mine.train"])");
  for (const char* line : {"python3 -c print()", "python3 -uc print()", "python3 -I train.py", "python3 -"})
    EXPECT_THAT(command(line), Not(HasSubstr("sweep_trial"))) << line;
}

TEST(FirstGrid, ANumberWithALeadingZeroAndNamesOfColumnsStay) {
  const std::string text =
      grid_of("python train.py --run 007 --offset=-01 --rate 0.5 --zero 0 --loss_scale 128");
  EXPECT_THAT(text, HasSubstr(R"("--run", "007", "--offset=-01", "--rate", "{rate}")"));
  EXPECT_THAT(text, HasSubstr("my_loss_scale: {type: integer, default: 128}"));
}

}  // namespace
}  // namespace sweep::interop
