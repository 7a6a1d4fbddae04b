#include "base/proc.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/support/must.h"

namespace sweep::proc {
namespace {

constexpr const char* kAfterParent = " 1 1 0 -1 4194560 1 0 0 0 5 6 7 8 20 0 1 0 ";

TEST(Proc, StatOfANameWithSpacesAndBrackets) {
  const auto stat = must(read_stat(std::string("42 (a) Z 9 (b)) S 7") + kAfterParent + "123456 4096 55\n"));
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.parent, 7);
  EXPECT_EQ(stat.start_ticks, 123456);
}

TEST(Proc, TheWaitForAProcessorIsTheSecondNumber) {
  EXPECT_EQ(read_processor_wait("17 4200 3\n"), 4200);
  EXPECT_FALSE(read_processor_wait("17 4200"));
  EXPECT_FALSE(read_processor_wait("17 x 3"));
  EXPECT_FALSE(read_processor_wait(""));
}

TEST(Proc, StatThatIsCutShortOrNoneIsAbsent) {
  const std::string whole = std::string("42 (a) S 7") + kAfterParent + "123456";
  ASSERT_TRUE(read_stat(whole));
  for (std::size_t size = 0; size + 6 < whole.size(); ++size)
    EXPECT_FALSE(read_stat(whole.substr(0, size))) << size;
  EXPECT_FALSE(read_stat(std::string("42 (a) S seven") + kAfterParent + "123456"));
  EXPECT_FALSE(stat_of("no such process"));
}

TEST(Proc, StatOfThisProcess) {
  const auto by_name = stat_of("self"), by_number = stat_of(std::to_string(::getpid()));
  ASSERT_TRUE(by_name && by_number);
  EXPECT_EQ(by_name->parent, ::getppid());
  EXPECT_EQ(by_name->start_ticks, by_number->start_ticks);
  EXPECT_EQ(by_name->state, 'R');
}

TEST(Proc, AVariableIsFoundByItsWholeName) {
  using namespace std::string_view_literals;
  const Environment environment("PATH=/bin\0RANKS=8\0RANK=3\0EMPTY=\0"sv);
  EXPECT_EQ(environment.value("RANK"), "3");
  EXPECT_EQ(environment.value("PATH"), "/bin");
  EXPECT_EQ(environment.value("EMPTY"), "");
  EXPECT_FALSE(environment.value("ANK"));
  EXPECT_FALSE(Environment::of("no such process").value("PATH"));
}

}  // namespace
}  // namespace sweep::proc
