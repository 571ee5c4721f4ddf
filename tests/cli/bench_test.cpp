// `tokenyard bench align`: the table and the result file.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.hpp"

namespace tokenyard::test {
namespace {

using nlohmann::json;

std::vector<std::string> keys(const nlohmann::ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& item : object.items()) names.push_back(item.key());
  return names;
}

TEST(Bench, PrintsATableAndWritesTheResultFile) {
  const TemporaryFolder folder;
  const std::string file = folder.file("align.json");
  const Result result = tokenyard(
      "bench align --device cpu --tokens 1,40 --top-k 2 --experts 8,16 --block 16 --distribution uniform,hot "
      "--json " +
      file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  constexpr int kCases = 8;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1 + kCases) << result.out;
  EXPECT_NE(result.out.find("tokens    K of E block"), std::string::npos) << result.out;

  const auto written = nlohmann::ordered_json::parse(read_file(file));
  EXPECT_EQ(keys(written), (std::vector<std::string>{"context", "results"}));
  EXPECT_EQ(keys(written["context"]), (std::vector<std::string>{"device", "driver", "sm_clock_mhz", "toolkit",
                                                                "commit", "date", "timer", "command"}));
  EXPECT_TRUE(
      written["context"]["command"].get<std::string>().starts_with("tokenyard bench align --device cpu"));
  ASSERT_EQ(written["results"].size(), kCases);
  const auto& first = written["results"][0];
  EXPECT_EQ(keys(first),
            (std::vector<std::string>{"op", "impl", "path", "tokens", "top_k", "experts", "block", "dtype",
                                      "distribution", "order", "padding_written", "cold", "floor_us",
                                      "us_p20", "us_p50", "us_p80", "host_ns", "verified"}));
  for (const auto& row : written["results"]) {
    EXPECT_EQ(row["op"], "align");
    EXPECT_EQ(row["impl"], "tokenyard");
    EXPECT_EQ(row["order"], "stable");
    EXPECT_EQ(row["verified"], true);
    EXPECT_TRUE(row["floor_us"].is_null()) << "a CPU has no empty kernel";
    EXPECT_GT(row["us_p50"].get<double>(), 0);
    EXPECT_LE(row["us_p20"].get<double>(), row["us_p50"].get<double>());
    EXPECT_LE(row["us_p50"].get<double>(), row["us_p80"].get<double>());
  }
}

TEST(Bench, RefusesToTimeASimulation) {
#ifdef TOKENYARD_SIMT
  const Result result = tokenyard("bench align --device simt32 --tokens 1");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("a simulation's times say nothing"), std::string::npos) << result.err;
#else
  GTEST_SKIP() << "this build has no simulator";
#endif
}

TEST(Bench, KnowsAtOnceThatAFileCannotBeWritten) {
  const Result result = tokenyard("bench align --device cpu --tokens 1 --json no/such/folder/align.json");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "tokenyard bench align: --json: cannot write no/such/folder/align.json\n");
}

}  // namespace
}  // namespace tokenyard::test
