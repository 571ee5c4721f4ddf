// Ids of every integer type, and files that are not what align wants.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ostream>
#include <type_traits>

#include "command.hpp"
#include "npy_file.hpp"

namespace tokenyard::test {
namespace {

using List = std::vector<int64_t>;

template <class T>
class IdsOfType : public ::testing::Test {};

using IdTypes = ::testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t>;
TYPED_TEST_SUITE(IdsOfType, IdTypes);

TYPED_TEST(IdsOfType, GoThroughAlign) {
  const TemporaryFolder folder;
  const std::string ids = folder.file("ids.npy");
  constexpr char kOrder = sizeof(TypeParam) == 1 ? '|' : '<';
  constexpr char kKind = std::is_signed_v<TypeParam> ? 'i' : 'u';
  const std::string descr = fmt::format("{}{}{}", kOrder, kKind, sizeof(TypeParam));
  write_file(ids, npy_header(descr, false, "(2, 2)") + npy_bytes<TypeParam>({1, 0, 99, 1}));
  const Result result = tokenyard(
      fmt::format("align --device cpu --ids {} --experts 2 --block 2 --out {}", ids, folder.file("out")));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_npy(folder.file("out/inverse.npy")).values, (List{2, 0, -1, 3}));
  // Types that hold more than int32 stay int64 on the way.
  EXPECT_EQ(read_npy(folder.file("out/topk_ids.npy")).descr,
            descr == "<i8" || descr == "<u4" ? "<i8" : "<i4");
}

TEST(Npy, AnOutputCanBeTheNextInput) {
  const TemporaryFolder folder;
  const std::string drawn =
      "align --device cpu --tokens 40 --top-k 3 --experts 9 --block 8 --int64 --invalid-ids --out ";
  ASSERT_EQ(tokenyard(drawn + folder.file("a")).exit_code, 0);
  ASSERT_EQ(read_npy(folder.file("a/topk_ids.npy")).descr, "<i8");
  const Result again = tokenyard(fmt::format("align --device cpu --experts 9 --block 8 --ids {} --out {}",
                                             folder.file("a/topk_ids.npy"), folder.file("b")));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  for (const char* name :
       {"topk_ids", "sorted_pair_ids", "block_expert", "inverse", "num_padded", "num_dropped"}) {
    EXPECT_EQ(read_file(folder.file(fmt::format("a/{}.npy", name))),
              read_file(folder.file(fmt::format("b/{}.npy", name))))
        << name;
  }
}

struct WrongFile {
  const char* name;
  std::string content;
  int exit_code;
  const char* message;

  friend std::ostream& operator<<(std::ostream& out, const WrongFile& file) { return out << file.name; }
};

class WrongNpy : public ::testing::TestWithParam<WrongFile> {};

TEST_P(WrongNpy, IsOneLineThatNamesTheFile) {
  const TemporaryFolder folder;
  const std::string ids = folder.file("ids.npy");
  write_file(ids, GetParam().content);
  const Result result = tokenyard(fmt::format("align --device cpu --ids {} --experts 4 --block 4", ids));
  EXPECT_EQ(result.exit_code, GetParam().exit_code);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with(fmt::format("tokenyard align: --ids: {} ", ids))) << result.err;
  EXPECT_NE(result.err.find(GetParam().message), std::string::npos) << result.err;
}

const std::string kFourIds = npy_bytes<int32_t>({0, 1, 2, 3});

INSTANTIATE_TEST_SUITE_P(
    , WrongNpy,
    ::testing::Values(
        WrongFile{"fortran", npy_header("<i4", true, "(2, 2)") + kFourIds, 2, "is in Fortran order"},
        WrongFile{"rank1", npy_header("<i4", false, "(4,)") + kFourIds, 2, "has 1 dimensions, expected 2"},
        WrongFile{"rank3", npy_header("<i4", false, "(1, 2, 2)") + kFourIds, 2, "has 3 dimensions"},
        WrongFile{"float", npy_header("<f4", false, "(2, 2)") + kFourIds, 2,
                  "holds <f4, expected little-endian"},
        WrongFile{"big_endian", npy_header(">i4", false, "(2, 2)") + kFourIds, 2, "holds >i4"},
        WrongFile{"object", npy_header("|O", false, "(2, 2)") + kFourIds, 1, "is not a whole .npy file"},
        WrongFile{"short", npy_header("<i4", false, "(2, 3)") + kFourIds, 1, "it ends too early"},
        WrongFile{"huge", npy_header("<i4", false, "(4611686018427387904, 4)") + kFourIds, 1,
                  "is not a whole"},
        WrongFile{"empty", "", 1, "is not a whole .npy file"},
        WrongFile{"text", "0 1\n2 3\n", 1, "is not a whole .npy file"},
        WrongFile{"no_header", npy_header("<i4", false, "(2, 2)").substr(0, 20), 1,
                  "is not a whole .npy file"}),
    [](const auto& test) { return test.param.name; });

TEST(Npy, AMissingFileIsAFailure) {
  const Result result = tokenyard("align --ids no/such.npy --experts 4 --block 4");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "tokenyard align: --ids: cannot open no/such.npy: No such file or directory\n");
}

TEST(Npy, AFolderThatCannotBeMadeIsAFailure) {
  const TemporaryFolder folder;
  write_file(folder.file("taken"), "");
  const Result result = tokenyard("align --device cpu --out " + folder.file("taken/below"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("--out: cannot make the folder"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace tokenyard::test
