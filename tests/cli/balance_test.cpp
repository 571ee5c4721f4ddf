// `tokenyard balance` on what every build has.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "command.hpp"

namespace tokenyard::test {
namespace {

// The numbers behind the step in the line that begins with it.
std::vector<double> row_of(const std::string& out, const std::string& step) {
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    if (!(words >> first) || first != step) continue;
    std::vector<double> numbers;
    for (double number = 0; words >> number;) numbers.push_back(number);
    return numbers;
  }
  return {};
}

TEST(Balance, EvensOutALoad) {
  const Result result = tokenyard("balance --tokens 300 --experts 32 --top-k 4 --steps 200 --device cpu");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("300 tokens x 4 of 32 experts, 200 steps of 0.005"), std::string::npos)
      << result.out;
  const std::vector<double> before = row_of(result.out, "0"), after = row_of(result.out, "200");
  ASSERT_GE(before.size(), 4U) << result.out;
  ASSERT_GE(after.size(), 4U) << result.out;
  EXPECT_GT(before[0], 2) << "the load was uneven";
  EXPECT_LT(after[0], 1.3) << result.out;
  EXPECT_GT(after[1], 0.7);
  EXPECT_GT(after[2], 0.99);
}

TEST(Balance, RefusesWhatHasNoLoad) {
  const Result result = tokenyard("balance --tokens 0 --device cpu");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--tokens is 0"), std::string::npos) << result.err;
}

#ifdef TOKENYARD_SIMT
TEST(Balance, RunsOnTheSimulator) {
  const std::string arguments = "balance --experts 8 --top-k 2 --tokens 50 --steps 10 --device ";
  const Result simulated = tokenyard(arguments + "simt64");
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
  EXPECT_EQ(row_of(simulated.out, "10"), row_of(tokenyard(arguments + "cpu").out, "10"));
}
#endif

}  // namespace
}  // namespace tokenyard::test
