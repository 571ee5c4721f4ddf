// What `tokenyard align` shows and writes.
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>

#include "command.hpp"
#include "npy_file.hpp"

namespace tokenyard::test {
namespace {

// Token 0 chose experts 2 and 0, token 1 experts 2 and 1, token 2 expert 2 and nothing.
class SmallProblem : public ::testing::Test {
 protected:
  SmallProblem() {
    write_file(ids_, npy_header("<i4", false, "(3, 2)") + npy_bytes<int32_t>({2, 0, 2, 1, 2, -1}));
  }

  TemporaryFolder folder_;
  std::string ids_ = folder_.file("ids.npy");
};

TEST_F(SmallProblem, IsDrawnSlotBySlot) {
  const Result result = tokenyard("align --device cpu --ids " + ids_ + " --experts 4 --block 2 --verify");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const std::string picture = result.out.substr(result.out.find("topk_ids"));
  EXPECT_EQ(picture,
            "topk_ids  each token and the experts that it chose\n"
            "    t0    2    0   t1    2    1   t2    2 (-1)\n"
            "\n"
            "sorted_pair_ids  a line a block of 2, one expert each: token.choice, padding \u00b7\n"
            "  block 0  expert 0  0.1 \u00b7\n"
            "  block 1  expert 1  1.1 \u00b7\n"
            "  block 2  expert 2  0.0 1.0\n"
            "  block 3  expert 2  2.0 \u00b7\n"
            "  and 1 unused block of expert -1: room for the worst routing\n");
  EXPECT_NE(result.out.find("pairs    5, 1 dropped\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("8 in 4 blocks of 2; 3 of them padding (37.5%); room for 10\n"),
            std::string::npos);
  EXPECT_NE(result.out.find("1.2 pairs an expert, at most 3 (2.40 x mean); 1 of 4 experts idle"),
            std::string::npos);
  EXPECT_NE(result.out.find("verified every output equals the sequential reference"), std::string::npos);
}

TEST_F(SmallProblem, WritesEveryOutput) {
  const std::string out = folder_.file("new/folder");
  const Result result = tokenyard("align --device cpu --ids " + ids_ + " --experts 4 --block 2 --out " + out);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto values = [&](const char* name) { return read_npy(out + "/" + name + ".npy").values; };
  using List = std::vector<int64_t>;
  EXPECT_EQ(values("topk_ids"), (List{2, 0, 2, 1, 2, -1}));
  EXPECT_EQ(values("sorted_pair_ids"), (List{1, 6, 3, 6, 0, 2, 4, 6, 6, 6}));
  EXPECT_EQ(values("block_expert"), (List{0, 1, 2, 2, -1}));
  EXPECT_EQ(values("block_rows"), (List{1, 1, 2, 1, 0}));
  EXPECT_EQ(values("counts"), (List{1, 1, 3, 0}));
  EXPECT_EQ(values("offsets"), (List{0, 2, 4, 8, 8}));
  EXPECT_EQ(values("inverse"), (List{4, 0, 5, 2, 6, -1}));
  EXPECT_EQ(read_npy(out + "/inverse.npy").shape, "(3, 2)");
  EXPECT_EQ(values("num_padded"), List{8});
  EXPECT_EQ(values("num_dropped"), List{1});
}

TEST_F(SmallProblem, GivesTokensOfNoExpertBlocksWhereIdsBeginBelow) {
  const Result result =
      tokenyard("align --device cpu --ids " + ids_ + " --experts 4 --first-id -1 --block 2 --verify");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string picture = result.out.substr(result.out.find("  block 0"));
  EXPECT_EQ(picture,
            "  block 0  expert -1  2.1 \u00b7\n"
            "  block 1  expert 0   0.1 \u00b7\n"
            "  block 2  expert 1   1.1 \u00b7\n"
            "  block 3  expert 2   0.0 1.0\n"
            "  block 4  expert 2   2.0 \u00b7\n");
  EXPECT_NE(result.out.find("pairs    6, 0 dropped\n"), std::string::npos) << result.out;
}

TEST_F(SmallProblem, NamesLocalAndGlobalExpertsUnderAMap) {
  const std::string map = folder_.file("map.npy");
  write_file(map, npy_header("<i8", false, "(4,)") + npy_bytes<int64_t>({-1, 1, 0, -1}));
  const Result result =
      tokenyard("align --device cpu --ids " + ids_ + " --experts 4 --block 4 --expert-map " + map);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("4 global experts, 2 local"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("block 0  expert 0 (global 2)  0.0 1.0 2.0 \u00b7\n"), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("block 1  expert 1 (global 1)  1.1 \u00b7   \u00b7   \u00b7\n"),
            std::string::npos);

  const Result wrong = tokenyard("align --ids " + ids_ + " --experts 3 --block 4 --expert-map " + map);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("has 4 entries, expected one for each of the 3 experts"), std::string::npos)
      << wrong.err;
}

TEST(Align, DrawsNothingAtAllForNoTokens) {
  const Result result = tokenyard("align --device cpu --tokens 0");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("0 in 0 blocks of 4"), std::string::npos) << result.out;
}

TEST(Align, LargeProblemsShowLoads) {
  const std::string problem = "align --device cpu --tokens 500 --top-k 4 --experts 40 --distribution hot";
  const Result by_id = tokenyard(problem);
  EXPECT_EQ(by_id.exit_code, 0) << by_id.err;
  EXPECT_NE(by_id.out.find("counts  pairs of each expert, by id, a column each; mean 50.0\n  500 "),
            std::string::npos)
      << by_id.out;
  const Result by_load = tokenyard(problem + " --by-load");
  EXPECT_NE(by_load.out.find("highest first"), std::string::npos);
  EXPECT_NE(by_load.out.find("mean 50.0\n  500 \u2588\n"), std::string::npos) << by_load.out;
}

TEST(Align, HasColourOnlyOnATerminal) {
  EXPECT_EQ(tokenyard("align --device cpu").out.find('\x1b'), std::string::npos);
}

TEST(Align, DrawsToRecordedLoads) {
  const std::string file = std::string(TOKENYARD_SOURCE) + "/bench/harness/loads/qwen1.5-moe-a2.7b.json";
  const Result result = tokenyard("align --device cpu --block 64 --tokens 1000 --verify --loads " + file);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("1000 tokens x 4 of 60 experts, blocks of 64"), std::string::npos) << result.out;
  EXPECT_EQ(tokenyard("align --block 64 --loads no-such-file.json").exit_code, 1);
}

#ifdef TOKENYARD_SIMT
TEST(Align, SaysTheSameOnTheSimulator) {
  const auto picture = [](const std::string& device) {
    const Result result = tokenyard("align --verify --device " + device);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out.substr(result.out.find("topk_ids"));
  };
  EXPECT_EQ(picture("simt32"), picture("cpu"));
  EXPECT_EQ(picture("simt64"), picture("cpu"));
}
#endif

// Real routings, where they lie beside the checkout; totals counted from the files by other means.
struct Recorded {
  const char* file;
  const char* options;
  const char* slots;
  const char* load;

  friend std::ostream& operator<<(std::ostream& out, const Recorded& routing) { return out << routing.file; }
};

class RecordedRouting : public ::testing::TestWithParam<Recorded> {};

TEST_P(RecordedRouting, HasTheRightTotals) {
  const std::string file = std::string(TOKENYARD_SOURCE) + "/../shared/data/" + GetParam().file;
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  const Result result = tokenyard("align --device cpu --verify --ids " + file + " " + GetParam().options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find(GetParam().slots), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(GetParam().load), std::string::npos) << result.out;
}

INSTANTIATE_TEST_SUITE_P(
    , RecordedRouting,
    ::testing::Values(Recorded{"qwen1.5-moe-a2.7b-layer0.topk_ids.npy", "--experts 60 --block 64",
                               "77056 in 1204 blocks of 64", "at most 16565"},
                      Recorded{"olmoe-1b-7b-layer0.topk_ids.npy", "--experts 64 --block 128",
                               "56448 in 441 blocks of 128", "at most 4889"}));

}  // namespace
}  // namespace tokenyard::test
