// `tokenyard verify training` and `bench training` on what every build has.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "command.hpp"

namespace tokenyard::test {
namespace {

TEST(Training, VerifyRunsAllThree) {
  const Result result = tokenyard("verify training --device cpu --count 20 --max-logits 3000 --seed 5");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("20 problems from seed 5, 60 runs"), std::string::npos) << result.out;
}

// Every option that TrainingShape::command() prints.
TEST(Training, VerifyTakesAWholeShape) {
  const Result result = tokenyard(
      "verify training --device cpu --tokens 33 --experts 16 --top-k 3 --dtype float16 --score sigmoid "
      "--weights renormalized --row-stride 20 --bias logits --groups 4 --kept-groups 2 --group-score top2 "
      "--epsilon 1e-20 --scale 2.5 --shared 2 --shared-weight 0.4 --shared-of-sum --padding 3 --int64 "
      "--logits special --seed 11 --sequences 3 --given-counts --balance-loss -0.5 --z-loss 0.0001");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("1 problem from seed 11, 3 runs,"), std::string::npos) << result.out;
}

TEST(Training, BenchWritesItsRows) {
  const TemporaryFolder folder;
  const std::string file = folder.file("training.json");
  const Result result = tokenyard("bench training --preset mixtral-8x7b --tokens 1,5 --sequences 2 --json " +
                                  file + " --device cpu");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto rows = nlohmann::json::parse(read_file(file))["results"];
  ASSERT_EQ(rows.size(), 5U) << "two of gate_backward, two of router_loss, one of balance";
  EXPECT_EQ(rows[1]["op"], "gate_backward");
  EXPECT_EQ(rows[1]["tokens"], 5);
  EXPECT_EQ(rows[3]["op"], "router_loss");
  EXPECT_EQ(rows[3]["sequences"], 2);
  EXPECT_EQ(rows[4]["op"], "balance");
  EXPECT_EQ(rows[4]["preset"], "mixtral-8x7b");
  for (const auto& row : rows) {
    EXPECT_EQ(row["verified"], true);
    EXPECT_GT(row["us_p50"], 0);
  }
}

#ifdef TOKENYARD_SIMT
TEST(Training, VerifyRunsOnTheSimulator) {
  const Result result = tokenyard("verify training --device simt64 --count 3 --max-logits 300");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}
#endif

}  // namespace
}  // namespace tokenyard::test
