// Shapes that once broke somebody's kernel, or sit on a border of ours, each on every device and path.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "device.hpp"
#include "expect.hpp"
#include "harness/problem.hpp"
#include "tuning/align.hpp"

namespace tokenyard::test {
namespace {

using harness::AlignShape;
using harness::Distribution;

struct Case {
  std::string name;
  AlignShape shape;
  harness::AlignOptions options = {};
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::string name, AlignShape shape, harness::AlignOptions options = {}) {
    shape.seed = all.size();
    all.push_back({std::move(name), shape, options});
  };

  for (const int32_t experts : {1, 8, 96, 160, 256, 257, 384, 512, 513, 1000, 1025, 2048, 4096}) {
    const std::string e = "experts_" + std::to_string(experts);
    const int32_t few = std::min(experts, 8);
    add(e + "_no_tokens", {.tokens = 0, .top_k = few, .experts = experts, .block = 64});
    add(e + "_one_token", {.tokens = 1, .top_k = few, .experts = experts, .block = 16});
    add(e + "_top_1", {.tokens = 37, .top_k = 1, .experts = experts, .block = 16});
    add(e + "_top_all", {.tokens = 3, .top_k = experts, .experts = experts, .block = 4});
    add(e + "_one_expert", {.tokens = 150,
                            .top_k = few,
                            .experts = experts,
                            .block = 32,
                            .distribution = Distribution::kOneExpert});
    add(e + "_hot", {.tokens = 100, .top_k = few, .experts = experts, .distribution = Distribution::kHot});
    add(e + "_invalid_ids",
        {.tokens = 90, .top_k = few, .experts = experts, .block = 16, .invalid_ids = true});
    add(e + "_invalid_int64_ids", {.tokens = 90,
                                   .top_k = few,
                                   .experts = experts,
                                   .block = 17,
                                   .int64_ids = true,
                                   .invalid_ids = true});
    add(e + "_long_runs", {.tokens = 600,
                           .top_k = 1,
                           .experts = experts,
                           .block = 2,
                           .distribution = Distribution::kOneExpert});
    add(e + "_required_outputs_only",
        {.tokens = 150, .top_k = few, .experts = experts, .block = 4, .distribution = Distribution::kZipf},
        {.optional_outputs = false});
    add(e + "_duplicates", {.tokens = 60, .top_k = 6, .experts = experts, .block = 16, .duplicates = true});
    add(e + "_half_remote",
        {.tokens = 64, .top_k = few, .experts = experts, .block = 16, .local_experts = (experts + 1) / 2});
  }
  for (const int32_t block : {1, 2, 15, 16, 17, 64, 100, 128, 1000}) {
    const std::string b = "block_" + std::to_string(block);
    const AlignShape shape{.tokens = 200, .top_k = 4, .experts = 24, .block = block};
    const auto with = [&](auto set) {
      AlignShape changed = shape;
      set(changed);
      return changed;
    };
    add(b, shape);
    add(b + "_zipf", with([](AlignShape& s) { s.distribution = Distribution::kZipf; }));
    add(b + "_least_capacity", with([](AlignShape& s) { s.extra_capacity = -(1 << 20); }));
    add(b + "_odd_capacity", with([](AlignShape& s) { s.extra_capacity = 13; }));
    add(b + "_large_capacity", with([](AlignShape& s) { s.extra_capacity = 5003; }));
    add(b + "_required_outputs_only", shape, {.optional_outputs = false});
    add(b + "_misaligned", with([](AlignShape& s) { s.invalid_ids = true; }), {.misalignment = 1});
  }
  for (const int misalignment : {1, 2, 3}) {
    for (const bool int64_ids : {false, true}) {
      const std::string suffix = std::to_string(misalignment) + (int64_ids ? "_int64" : "_int32");
      add("misaligned_by_" + suffix, {.tokens = 333, .top_k = 6, .experts = 96, .int64_ids = int64_ids},
          {.misalignment = misalignment});
      add("misaligned_rows_by_" + suffix,
          {.tokens = 111, .top_k = 5, .experts = 96, .int64_ids = int64_ids, .row_stride = 8 + misalignment},
          {.misalignment = misalignment});
    }
  }
  for (const int64_t stride : {9, 16, 31, 4096}) {
    add("row_stride_" + std::to_string(stride),
        {.tokens = 70, .top_k = 8, .experts = 64, .row_stride = stride});
    add("row_stride_int64_" + std::to_string(stride),
        {.tokens = 70, .top_k = 8, .experts = 64, .int64_ids = true, .row_stride = stride});
  }
  for (const int32_t local : {1, 32, 255, 256, 300}) {
    const std::string l = "local_experts_" + std::to_string(local);
    add(l, {.tokens = 120, .top_k = 8, .experts = 256, .block = 32, .local_experts = local});
    add(l + "_replicas",
        {.tokens = 120, .top_k = 8, .experts = 256, .block = 32, .local_experts = local, .duplicates = true});
    add(l + "_entries_out_of_range", {.tokens = 120,
                                      .top_k = 8,
                                      .experts = 256,
                                      .block = 32,
                                      .local_experts = local,
                                      .invalid_ids = true});
  }
  for (const int32_t experts : {8, 257, 4096}) {
    const std::string e = "first_id_of_" + std::to_string(experts) + "_experts_";
    const AlignShape none{
        .tokens = 90, .top_k = 8, .experts = experts, .block = 16, .first_id = -1, .invalid_ids = true};
    add(e + "none", none);
    add(e + "none_and_required_outputs_only", none, {.optional_outputs = false});
    add(e + "a_million", {.tokens = 4,
                          .top_k = 8,
                          .experts = experts,
                          .block = 16,
                          .int64_ids = true,
                          .first_id = 1'000'000,
                          .invalid_ids = true});
  }
  return all;
}

class Shapes : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(Shapes, AreRight) {
  const auto& [device, c] = GetParam();
  TY_SKIP_IF_MISSING(device);
  expect_right(device, harness::draw(c.shape), c.options);
}

INSTANTIATE_TEST_SUITE_P(Align, Shapes,
                         testing::Combine(testing::ValuesIn(kAllDevices), testing::ValuesIn(cases())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

// Pairs around the borders of tiles and of the tuning rows. The executor runs a fiber per GPU thread, so it
// takes the small borders and the GPUs take all.
class Borders : public testing::TestWithParam<std::tuple<std::string, int64_t, int32_t>> {};

TEST_P(Borders, AreRight) {
  const auto& [device, pairs, experts] = GetParam();
  TY_SKIP_IF_MISSING(device);
  expect_right(device, harness::draw({.tokens = pairs,
                                      .top_k = 1,
                                      .experts = experts,
                                      .block = 64,
                                      .distribution = Distribution::kZipf,
                                      .seed = static_cast<uint64_t>(pairs)}));
}

std::string border_name(const testing::TestParamInfo<Borders::ParamType>& info) {
  const auto& [device, pairs, experts] = info.param;
  return device + "_" + std::to_string(pairs) + "_pairs_" + std::to_string(experts) + "_experts";
}

INSTANTIATE_TEST_SUITE_P(Align, Borders,
                         testing::Combine(testing::ValuesIn(kAllDevices),
                                          testing::Values(31, 32, 33, 127, 128, 129, 511, 512, 513, 1023,
                                                          1024, 1025, 2047, 2048, 2049, 8191, 8192, 8193),
                                          testing::Values(8, 300)),
                         border_name);
// The last problem of each launch of a list, and the first that is too large for it.
std::vector<std::tuple<std::string, int64_t, int32_t>> tile_borders() {
  std::vector<std::tuple<std::string, int64_t, int32_t>> all;
  const auto add = [&](const std::string& device, const tuning::AlignKernels& kernels) {
    for (const tuning::Tiles& tiles : kernels.tiles) {
      for (const int64_t pairs : {tiles.pairs(), tiles.pairs() + 1}) {
        all.emplace_back(device, pairs, tiles.experts);
        if (tiles.wide()) all.emplace_back(device, pairs, tiles.experts / 2 + 1);
      }
    }
  };
  add("simt32", tuning::kSimt);
  add("simt64", tuning::kSimt);
  add("cuda", tuning::kHopper);
  add("hip", tuning::kAmd);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}
INSTANTIATE_TEST_SUITE_P(AlignTiles, Borders, testing::ValuesIn(tile_borders()), border_name);
INSTANTIATE_TEST_SUITE_P(AlignLarge, Borders,
                         testing::Combine(testing::ValuesIn(kAllDevices),
                                          testing::Values(65535, 65536, 65537), testing::Values(256)),
                         border_name);
INSTANTIATE_TEST_SUITE_P(AlignHuge, Borders,
                         testing::Combine(testing::Values(kReference, "cpu", "cuda", "hip"),
                                          testing::Values(16383, 16384, 16385, 32767, 32768, 32769, 131071,
                                                          131072, 131073, 1 << 20, (1 << 22) + 1),
                                          testing::Values(256, 4096)),
                         border_name);

}  // namespace
}  // namespace tokenyard::test
