// Help texts, exit codes and one-line errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "command.hpp"

namespace tokenyard::test {
namespace {

using ::testing::Values;

class Help : public ::testing::TestWithParam<const char*> {};

TEST_P(Help, TeachesByExamplesWithin100Columns) {
  const Result result = tokenyard(std::string(GetParam()) + " --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("  tokenyard "), std::string::npos) << "no example";
  size_t start = 0;
  for (size_t end = result.out.find('\n'); end != std::string::npos; end = result.out.find('\n', start)) {
    EXPECT_LE(end - start, 100U) << result.out.substr(start, end - start);
    start = end + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(, Help,
                         Values("", "gate", "align", "route", "balance", "verify", "verify gate",
                                "verify route", "verify training", "bench", "bench align", "bench gate",
                                "bench route", "bench training", "info"));

TEST(Command, TellsItsVersion) {
  const Result result = tokenyard("--version");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.out.starts_with("tokenyard ")) << result.out;
}

TEST(Command, InfoListsEveryBackendAndWhyExplainsEverySize) {
  const Result info = tokenyard("info");
  EXPECT_EQ(info.exit_code, 0) << info.err;
  for (const char* name : {"cpu", "cuda", "hip", "simt32", "simt64", "best"}) {
    EXPECT_NE(info.out.find(std::string("\n  ") + name), std::string::npos) << name;
  }
  const Result why = tokenyard("info --why --tokens 0,1,70000 --experts 64 --top-k 6");
  EXPECT_EQ(why.exit_code, 0) << why.err;
  EXPECT_NE(why.out.find("top-6 of 64 experts"), std::string::npos);
  EXPECT_NE(why.out.find("   70000  "), std::string::npos);
}

struct Mistake {
  const char* arguments;
  const char* message;

  friend std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
    return out << mistake.arguments;
  }
};

class WrongUsage : public ::testing::TestWithParam<Mistake> {};

TEST_P(WrongUsage, IsOneLineThatNamesTheCommandAndExitCode2) {
  const Result result = tokenyard(GetParam().arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("tokenyard")) << result.err;
  EXPECT_NE(result.err.find(GetParam().message), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    , WrongUsage,
    Values(
        Mistake{"", "tokenyard: "}, Mistake{"frobnicate", "tokenyard: "},
        Mistake{"align --frobnicate", "tokenyard align: "}, Mistake{"bench", "tokenyard bench: "},
        Mistake{"align --block 0", "tokenyard align: block_size is 0, expected 1"},
        Mistake{"align --experts 5000", "num_experts is 5000"},
        Mistake{"gate --top-k 9", "tokenyard gate: top_k is 9, expected 1 to 8"},
        Mistake{"gate --preset gpt-1", "expected one of mixtral-8x7b"},
        Mistake{"align --tokens many", "--tokens is many, expected a whole number of 64 bits"},
        Mistake{"align --tokens 12345678901234567890", "--tokens is 12345678901234567890, expected"},
        Mistake{"bench align --tokens 1,12345678901234567890", "--tokens is 12345678901234567890, expected"},
        Mistake{"align --local-experts -2", "--local-experts is -2, expected a whole number from 0 to"},
        Mistake{"align --seed -1", "--seed is -1, expected a whole number from 0 to"},
        Mistake{"align --device cpu --path grid", "--path is grid, expected auto on cpu"},
        Mistake{"verify --device cpu --path split", "--path is split, expected auto on cpu"},
        Mistake{"bench align --device cpu --path grid", "--path is grid, expected auto on cpu"},
        Mistake{"gate --device cpu --lanes 8", "--lanes is 8, expected 0 on cpu"},
        Mistake{"gate --replicas -2", "--replicas is -2, expected a whole number from 0 to"},
        Mistake{"gate --padding -2", "--padding is -2, expected a whole number from -1 to"},
        Mistake{"gate --tokens 8 --padding 9", "--padding is 9, expected at most 8"},
        Mistake{"gate --preset deepseek-v3 --experts 64", "--experts excludes --preset"},
        Mistake{"gate --kept-groups 2", "--kept-groups requires --groups"},
        Mistake{"route --experts 4095 --shared 3",
                "tokenyard route: num_experts + num_shared_experts is 4095 + 3, expected a sum of at most"},
        Mistake{"balance --skew nan", "--skew is nan, expected a finite number"},
        Mistake{"balance --bias none", "--bias"},
        Mistake{"verify gate --experts 4", "--experts requires --tokens"},
        Mistake{"verify --tokens 4 --max-pairs 100", "--tokens excludes --max-pairs"},
        Mistake{"verify --seconds nan", "--seconds is nan, expected a number from 0.001"},
        Mistake{"verify training --replicas 2", "--replicas"},
        Mistake{"align --tokens 2000000000", "num_tokens is 2000000000"},
        Mistake{"align --distribution flat",
                "--distribution is flat, expected one of uniform, zipf, hot, one"},
        Mistake{"align --path short", "expected one of auto, everywhere, grid, split"},
        Mistake{"align --device abacus",
                "--device is abacus, expected best, cpu, cuda, hip, simt32, "
                "simt64: see tokenyard info"},
        Mistake{"align --device cpu:x", "--device is cpu:x"},
        Mistake{"align --device cpu:7", "ordinal is 7, expected 0 to 0"},
        Mistake{"align --ids a.npy", "--experts"},
        Mistake{"align --ids a.npy --experts 4 --block 4 --tokens 3", "--tokens"},
        Mistake{"verify --experts 4", "--tokens"}, Mistake{"verify --max-pairs 0", "--max-pairs"},
        Mistake{"info --tokens 3", "--why"}, Mistake{"bench align --top-k 0", "top_k is 0"}));

TEST(Command, AMissingDeviceIsAFailure) {
  const Result info = tokenyard("info");
  if (info.out.find("  hip     not in this build") == std::string::npos) GTEST_SKIP() << "this build has HIP";
  const Result result = tokenyard("align --device hip");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("this build has no backend hip"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace tokenyard::test
