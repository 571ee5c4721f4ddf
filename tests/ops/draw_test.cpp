// The problems that tests and measurements draw are what they say, and the same on every platform.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/loads.hpp"
#include "harness/problem.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::test {
namespace {

using harness::AlignProblem;
using harness::AlignShape;
using harness::Distribution;

std::vector<int64_t> first_ids(const AlignProblem& problem, size_t count) {
  return {problem.ids.begin(), problem.ids.begin() + static_cast<ptrdiff_t>(count)};
}

std::vector<double> frequencies(const AlignProblem& problem) {
  std::vector<double> found(static_cast<size_t>(problem.shape.experts), 0);
  for (const int64_t id : problem.ids)
    found[static_cast<size_t>(id)] += 1.0 / static_cast<double>(problem.shape.tokens);
  return found;
}

bool names_distinct_experts(const AlignProblem& problem) {
  for (auto row = problem.ids.begin(); row != problem.ids.end(); row += problem.shape.top_k) {
    const std::set<int64_t> distinct(row, row + problem.shape.top_k);
    if (std::ssize(distinct) != problem.shape.top_k || *distinct.begin() < 0 ||
        *distinct.rbegin() >= problem.shape.experts) {
      return false;
    }
  }
  return true;
}

// A seed in a bug report must mean the same problem everywhere, and tomorrow.
TEST(Draw, IsTheSameOnEveryPlatform) {
  AlignShape shape{.tokens = 10, .top_k = 4, .experts = 64, .seed = 1};
  EXPECT_EQ(first_ids(harness::draw(shape), 8), (std::vector<int64_t>{55, 47, 23, 25, 7, 55, 15, 6}));
  shape.distribution = Distribution::kZipf;
  EXPECT_EQ(first_ids(harness::draw(shape), 8), (std::vector<int64_t>{51, 18, 53, 3, 33, 29, 32, 60}));
  EXPECT_EQ(harness::draw_shape(5, 1000).command(),
            "tokenyard verify --tokens 4 --top-k 1 --experts 4 --block 7 --int64 --distribution zipf "
            "--duplicates --seed 5");
}

TEST(Draw, TokensNameDistinctExperts) {
  for (const auto distribution : {Distribution::kUniform, Distribution::kZipf, Distribution::kHot}) {
    for (const int32_t top_k : {1, 8, 16}) {
      EXPECT_TRUE(names_distinct_experts(
          harness::draw({.tokens = 500, .top_k = top_k, .experts = 16, .distribution = distribution})));
    }
  }
}

TEST(Draw, UniformIsUniform) {
  const AlignProblem problem = harness::draw({.tokens = 40'000, .top_k = 4, .experts = 32});
  for (const double frequency : frequencies(problem)) EXPECT_NEAR(frequency, 4.0 / 32, 0.01);
}

TEST(Draw, ZipfFollowsItsWeights) {
  const AlignProblem problem =
      harness::draw({.tokens = 40'000, .top_k = 1, .experts = 50, .distribution = Distribution::kZipf});
  std::vector<double> found = frequencies(problem);
  std::sort(found.rbegin(), found.rend());
  double sum = 0;
  for (int rank = 1; rank <= 50; ++rank) sum += std::pow(rank, -1.2);
  for (int rank = 1; rank <= 10; ++rank) {
    EXPECT_NEAR(found[static_cast<size_t>(rank - 1)], std::pow(rank, -1.2) / sum, 0.01) << rank;
  }
}

TEST(Draw, HotIsNamedByEveryToken) {
  const AlignProblem problem =
      harness::draw({.tokens = 1000, .top_k = 3, .experts = 40, .distribution = Distribution::kHot});
  const std::vector<double> found = frequencies(problem);
  EXPECT_DOUBLE_EQ(std::round(*std::max_element(found.begin(), found.end()) * 1e6), 1e6);
}

TEST(Draw, OneExpertTakesAll) {
  const AlignProblem problem =
      harness::draw({.tokens = 100, .top_k = 3, .experts = 40, .distribution = Distribution::kOneExpert});
  EXPECT_EQ(std::set<int64_t>(problem.ids.begin(), problem.ids.end()).size(), 1u);
}

TEST(Draw, InvalidIdsAreOfEveryKind) {
  AlignShape shape{.tokens = 4000, .top_k = 2, .experts = 10, .invalid_ids = true};
  const AlignProblem narrow = harness::draw(shape);
  for (const int64_t id : {-1, -2, INT_MIN, 10, 11, INT_MAX}) {
    EXPECT_NE(std::count(narrow.ids.begin(), narrow.ids.end(), id), 0) << id;
  }
  const auto invalid =
      std::count_if(narrow.ids.begin(), narrow.ids.end(), [](int64_t id) { return id < 0 || id > 9; });
  EXPECT_NEAR(static_cast<double>(invalid) / 8000, 0.1, 0.02);
  shape.int64_ids = true;
  const AlignProblem wide = harness::draw(shape);
  EXPECT_TRUE(std::any_of(wide.ids.begin(), wide.ids.end(), [](int64_t id) {
    return id > INT_MAX && static_cast<int32_t>(id) >= 0 && static_cast<int32_t>(id) < 10;
  }));
}

TEST(Draw, MapsHoldEachLocalExpertOnce) {
  const AlignProblem problem = harness::draw({.tokens = 1, .top_k = 1, .experts = 40, .local_experts = 13});
  ASSERT_EQ(problem.expert_map.size(), 40u);
  for (int32_t local = 0; local < 13; ++local) {
    EXPECT_EQ(std::count(problem.expert_map.begin(), problem.expert_map.end(), local), 1);
  }
  EXPECT_EQ(std::count(problem.expert_map.begin(), problem.expert_map.end(), -1), 27);
}

TEST(Draw, CapacityStaysAboveTheMinimum) {
  const AlignShape shape{.tokens = 100, .top_k = 4, .experts = 8, .block = 16, .extra_capacity = -1'000'000};
  EXPECT_EQ(harness::draw(shape).capacity, ty_align_min_capacity(400, 8, 16));
}

class RealLoads : public testing::TestWithParam<const char*> {
 protected:
  const std::string file = std::string(TOKENYARD_LOADS "/") + GetParam();
};
INSTANTIATE_TEST_SUITE_P(Loads, RealLoads, testing::Values("olmoe-1b-7b.json", "qwen1.5-moe-a2.7b.json"),
                         [](const auto& info) { return std::string(info.param).substr(0, 4); });

TEST_P(RealLoads, ComeOutOfTheDraw) {
  const harness::Loads loads = harness::read_loads(file);
  const AlignProblem problem = harness::draw_to_loads({.tokens = 50'000, .seed = 3}, loads);
  EXPECT_EQ(problem.shape.top_k, loads.top_k);
  EXPECT_EQ(problem.shape.experts, loads.experts);
  EXPECT_TRUE(names_distinct_experts(problem));
  const std::vector<double> found = frequencies(problem);
  for (size_t expert = 0; expert < found.size(); ++expert) {
    EXPECT_NEAR(found[expert], static_cast<double>(loads.counts[expert]) / static_cast<double>(loads.tokens),
                0.01);
  }
}

class WrongLoads : public testing::Test {
 protected:
  ~WrongLoads() override { std::remove(file.c_str()); }

  void expect_refused(const std::string& contents, const std::string& says) {
    std::ofstream(file) << contents;
    try {
      harness::read_loads(file);
      ADD_FAILURE() << "was read: " << contents;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(file), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  }

  const std::string file =
      testing::TempDir() + "loads_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
};

TEST_F(WrongLoads, AreRefused) {
  const auto with = [](const std::string& numbers) {
    return R"({"model": "m", "layer": 0, "source": "s", )" + numbers + "}";
  };
  expect_refused("no json", "is no file of expert loads");
  expect_refused(with(R"("tokens": 2, "top_k": 1, "experts": 2)"), "counts");
  expect_refused(with(R"("tokens": 0, "top_k": 1, "experts": 2, "counts": [0, 0])"), "tokens is 0");
  expect_refused(with(R"("tokens": 2, "top_k": 1, "experts": 3, "counts": [1, 1])"), "counts has 2 entries");
  expect_refused(with(R"("tokens": 2, "top_k": 2, "experts": 2, "counts": [3, 1])"), "counts[0] is 3");
  expect_refused(with(R"("tokens": 2, "top_k": 2, "experts": 2, "counts": [1, 1])"), "counts sum up to 2");
}

TEST_F(WrongLoads, AMissingFileIsNamed) { EXPECT_THROW(harness::read_loads(file), std::runtime_error); }

}  // namespace
}  // namespace tokenyard::test
