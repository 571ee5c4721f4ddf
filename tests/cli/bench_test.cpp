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
  EXPECT_EQ(written["context"]["command"],
            "tokenyard bench align --device cpu --tokens 1,40 --top-k 2 --experts 8,16 --block 16 "
            "--distribution uniform,hot --json align.json")
      << "of files their names: folders are this machine's";
  ASSERT_EQ(written["results"].size(), kCases);
  const auto& first = written["results"][0];
  EXPECT_EQ(keys(first),
            (std::vector<std::string>{"op", "impl", "path", "tokens", "top_k", "experts", "block", "dtype",
                                      "distribution", "order", "padding_written", "cold", "linked",
                                      "floor_us", "us_p20", "us_p50", "us_p80", "host_ns", "verified"}));
  for (const auto& row : written["results"]) {
    EXPECT_EQ(row["op"], "align");
    EXPECT_EQ(row["impl"], "tokenyard");
    EXPECT_EQ(row["order"], "stable");
    EXPECT_EQ(row["verified"], true);
    EXPECT_EQ(row["cold"], false);
    EXPECT_TRUE(row["floor_us"].is_null()) << "a CPU has no empty kernel";
    EXPECT_GT(row["us_p50"].get<double>(), 0);
    EXPECT_LE(row["us_p20"].get<double>(), row["us_p50"].get<double>());
    EXPECT_LE(row["us_p50"].get<double>(), row["us_p80"].get<double>());
  }
}

TEST(Bench, DrawsToRecordedLoads) {
  const TemporaryFolder folder;
  const std::string file = folder.file("align.json");
  const Result result = tokenyard("bench align --device cpu --tokens 5 --json=" + file +
                                  " --loads " TOKENYARD_SOURCE "/bench/harness/loads/olmoe-1b-7b.json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json written = json::parse(read_file(file));
  EXPECT_EQ(written["context"]["command"],
            "tokenyard bench align --device cpu --tokens 5 --json=align.json --loads olmoe-1b-7b.json");
  ASSERT_EQ(written["results"].size(), 1U);
  const json& row = written["results"][0];
  EXPECT_EQ(row["distribution"], "olmoe-1b-7b");
  EXPECT_EQ(row["tokens"], 5);
  EXPECT_EQ(row["top_k"], 8);
  EXPECT_EQ(row["experts"], 64);
}

// The commit is that of the sources, wherever the command runs.
TEST(Bench, NamesTheSourcesCommitFromAnyFolder) {
  const TemporaryFolder folder;
  const auto commit = [&](const std::string& from) {
    const std::string file = folder.file("align.json");
    EXPECT_EQ(tokenyard("bench align --device cpu --tokens 1 --json " + file, from).exit_code, 0);
    return json::parse(read_file(file))["context"]["commit"];
  };
  EXPECT_EQ(commit("/"), commit(TOKENYARD_SOURCE));
}

TEST(Bench, ExplainsWhatColdNeeds) {
  const Result result = tokenyard("bench align --device cpu --cold --tokens 1");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--cold is given, expected a GPU"), std::string::npos) << result.err;
}

TEST(Bench, ExplainsWhatLinkedNeeds) {
  const Result result = tokenyard("bench align --device cpu --linked --tokens 1");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--linked is given, expected a device"), std::string::npos) << result.err;
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
