// Routings that real models made, where the recordings lie beside the repository.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <xtensor/xnpy.hpp>

#include "device.hpp"
#include "expect.hpp"
#include "harness/problem.hpp"

namespace tokenyard::test {
namespace {

struct Recording {
  const char* name;
  const char* file;
  int32_t experts;
};

const Recording kRecordings[] = {{"olmoe", "olmoe-1b-7b-layer0.topk_ids.npy", 64},
                                 {"qwen", "qwen1.5-moe-a2.7b-layer0.topk_ids.npy", 60}};

constexpr int64_t kTokensForTheExecutor = 2048;

class RealRouting : public testing::TestWithParam<std::tuple<std::string, Recording>> {};

TEST_P(RealRouting, IsRight) {
  const auto& [device, recording] = GetParam();
  TY_SKIP_IF_MISSING(device);
  const auto path = std::filesystem::path(TOKENYARD_RECORDINGS) / recording.file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto ids = xt::load_npy<int32_t>(path.string());
  harness::AlignShape shape{.tokens = static_cast<int64_t>(ids.shape(0)),
                            .top_k = static_cast<int32_t>(ids.shape(1)),
                            .experts = recording.experts,
                            .block = 64};
  if (device.starts_with("simt")) shape.tokens = kTokensForTheExecutor;
  const std::vector<int64_t> last_tokens(ids.end() - shape.tokens * shape.top_k, ids.end());
  expect_right(device, harness::from_ids(shape, last_tokens));
}

INSTANTIATE_TEST_SUITE_P(Align, RealRouting,
                         testing::Combine(testing::ValuesIn(kAllDevices), testing::ValuesIn(kRecordings)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace tokenyard::test
