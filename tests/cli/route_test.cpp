// `tokenyard route`, `verify route` and `bench route` on what every build has.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "command.hpp"

namespace tokenyard::test {
namespace {

TEST(Route, ShowsChoicesAndBlocks) {
  const Result result = tokenyard("route --tokens 3 --experts 6 --top-k 2 --block 2 --device cpu --seed 2");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("3 tokens x 2 of 6 experts, blocks of 2"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("ids and weights are gate's, the order is the reference's"), std::string::npos);
  EXPECT_NE(result.out.find("\n    2:  "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\n  block 0  expert "), std::string::npos) << result.out;
}

// Every option that RouteShape::command() adds to GateShape's.
TEST(Route, TakesAWholeShape) {
  const Result result = tokenyard(
      "verify route --device cpu --tokens 33 --experts 16 --top-k 3 --shared 2 --replicas 2 --padding 3 "
      "--block 7 --local-experts 12 --several-on-one --extra-capacity -5 --seed 11");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("1 problem from seed 11, 2 runs"), std::string::npos) << result.out;
}

TEST(Route, BenchWritesItsRows) {
  const TemporaryFolder folder;
  const std::string file = folder.file("route.json");
  const Result result = tokenyard("bench route --preset mixtral-8x7b --tokens 1,5 --path auto,two --json " +
                                  file + " --device cpu");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto recorded = nlohmann::json::parse(read_file(file));
  ASSERT_EQ(recorded["results"].size(), 4U);
  EXPECT_EQ(recorded["results"][3]["tokens"], 5);
  EXPECT_EQ(recorded["results"][3]["path"], "two");
  EXPECT_EQ(recorded["results"][3]["preset"], "mixtral-8x7b");
  EXPECT_GT(recorded["results"][3]["us_p50"], 0);
}

}  // namespace
}  // namespace tokenyard::test
