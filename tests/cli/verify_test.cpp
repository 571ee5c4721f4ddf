// `tokenyard verify` on what every build has, and on the simulator.
#include <gtest/gtest.h>

#include "command.hpp"

namespace tokenyard::test {
namespace {

TEST(Verify, CountsItsProblems) {
  const Result result = tokenyard("verify --device cpu --count 25 --max-pairs 3000 --seed 5");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "") << "progress belongs on a terminal";
  EXPECT_NE(result.out.find("25 problems from seed 5, 25 runs"), std::string::npos) << result.out;
}

TEST(Verify, StopsInTime) {
  const Result result = tokenyard("verify --device cpu --seconds 0.2 --max-pairs 100");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

// Every option that AlignShape::command() prints.
TEST(Verify, TakesAWholeShape) {
  const Result result = tokenyard(
      "verify --device cpu --tokens 33 --top-k 3 --experts 20 --block 7 --int64 --row-stride 5 "
      "--local-experts 4 "
      "--extra-capacity -9 --distribution zipf --invalid-ids --duplicates --seed 11");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("1 problem from seed 11, 1 run,"), std::string::npos) << result.out;
}

#ifdef TOKENYARD_SIMT
TEST(Verify, RunsEveryPathInTurn) {
  const Result all = tokenyard("verify --device simt32 --count 3 --max-pairs 300");
  EXPECT_EQ(all.exit_code, 0) << all.out << all.err;
  EXPECT_NE(all.out.find("path everywhere, grid, split, auto\n"), std::string::npos) << all.out;
  const Result one = tokenyard("verify --device simt64 --count 3 --max-pairs 300 --path split");
  EXPECT_EQ(one.exit_code, 0) << one.out << one.err;
  EXPECT_NE(one.out.find("3 problems from seed 0, 3 runs"), std::string::npos) << one.out;
}

TEST(Verify, FailsWhereNothingRan) {
  for (const char* command : {
           "verify --device simt32 --path everywhere --tokens 9000 --top-k 1 --experts 8 --block 4",
           "verify gate --device simt32 --tokens 3 --experts 4096 --top-k 64 --lanes 8",
       }) {
    const Result result = tokenyard(command);
    EXPECT_NE(result.exit_code, 0) << command << result.out;
    EXPECT_NE(result.err.find("nothing ran"), std::string::npos) << command << result.err;
  }
}
#endif

}  // namespace
}  // namespace tokenyard::test
