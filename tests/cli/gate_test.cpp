// `tokenyard gate`, `verify gate` and `bench gate` on what every build has.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "command.hpp"

namespace tokenyard::test {
namespace {

TEST(Gate, ListsAFewTokensWithTheirWeights) {
  const Result result = tokenyard("gate --tokens 3 --experts 6 --top-k 2 --device cpu --seed 2");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("3 tokens x 2 of 6 experts"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("every output is what the float64 reference says"), std::string::npos);
  EXPECT_NE(result.out.find("\n    2:  "), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("\n    3:  "), std::string::npos) << result.out;
}

TEST(Gate, DrawsTheLoadsOfManyTokens) {
  const Result result = tokenyard("gate --preset qwen3-moe --tokens 100 --dtype bfloat16 --device cpu");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("100 tokens x 8 of 128 experts"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("of each expert"), std::string::npos) << result.out;
}

// Every option that GateShape::command() prints.
TEST(Gate, TakesAWholeShape) {
  const Result result = tokenyard(
      "verify gate --device cpu --tokens 33 --experts 16 --top-k 3 --dtype float16 --score sigmoid "
      "--weights renormalized --row-stride 20 --bias logits --groups 4 --kept-groups 2 --group-score top2 "
      "--epsilon 1e-20 --scale 2.5 --shared 2 --shared-weight 0.4 --shared-of-sum --replicas 2 --padding 3 "
      "--int64 --logits special --seed 11");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("1 problem from seed 11, 1 run,"), std::string::npos) << result.out;
}

TEST(Gate, BenchWritesItsRows) {
  const TemporaryFolder folder;
  const std::string file = folder.file("gate.json");
  const Result result = tokenyard("bench gate --preset mixtral-8x7b --tokens 1,5 --dtype float32 --json " +
                                  file + " --device cpu");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto recorded = nlohmann::json::parse(read_file(file));
  ASSERT_EQ(recorded["results"].size(), 2U);
  EXPECT_EQ(recorded["results"][1]["tokens"], 5);
  EXPECT_EQ(recorded["results"][1]["preset"], "mixtral-8x7b");
  EXPECT_EQ(recorded["results"][1]["verified"], true);
  EXPECT_GT(recorded["results"][1]["us_p50"], 0);
}

#ifdef TOKENYARD_SIMT
TEST(Gate, RunsOnTheSimulator) {
  for (const char* lanes : {"0", "8", "32"}) {
    const Result result = tokenyard(
        std::string("gate --preset deepseek-v3 --tokens 5 --dtype bfloat16 --device simt32 --lanes ") +
        lanes);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  }
}
#endif

}  // namespace
}  // namespace tokenyard::test
