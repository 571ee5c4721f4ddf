// Promises of gate beyond one right result: the same bits again, and whatever the batch around a token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device.hpp"
#include "gate_expect.hpp"
#include "harness/gate_run.hpp"
#include "runs.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::test {
namespace {

using harness::GateOutputs;
using harness::GateProblem;
using harness::GateRun;
using harness::GateShape;

class GatePromises : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { TY_SKIP_IF_MISSING(device); }

  GateOutputs launched(GateRun& run) const {
    require(run.poison());
    require(run.launch(nullptr));
    require(find_backend(device)->runtime->synchronize(nullptr));
    GateOutputs outputs;
    require(run.collect(outputs));
    return outputs;
  }

  const std::string device = GetParam();
};

INSTANTIATE_TEST_SUITE_P(Gate, GatePromises, testing::ValuesIn(kRealDevices),
                         [](const auto& info) { return info.param; });

const GateShape kDeepSeek = deepseek_v3(40);

// Counts are cleared by each call, and nothing else is kept from one to the next.
TEST_P(GatePromises, OtherLogitsThroughTheSameBuffers) {
  std::optional<GateRun> run;
  require(GateRun::create(device_id(device), harness::draw(kDeepSeek), {}, run));
  for (const auto kind : {harness::Logits::kSpecial, harness::Logits::kNormal, harness::Logits::kEqual,
                          harness::Logits::kNan, harness::Logits::kExtreme}) {
    GateShape other = kDeepSeek;
    other.logits = kind;
    other.seed = 1;
    const GateProblem drawn = harness::draw(other);
    GateProblem problem = harness::draw(kDeepSeek);
    problem.logits = drawn.logits;
    require(run->set_logits(problem.logits));
    const GateOutputs got = launched(*run);
    EXPECT_EQ(harness::broken_promise(problem, got), "") << other.command();
    EXPECT_EQ(harness::difference(launched(*run), got), "") << other.command();
  }
}

// The numbers of tokens lie on both sides of the borders of the tuning rows.
TEST_P(GatePromises, TheBatchAroundATokenDoesNotMatter) {
  GateShape shape = kDeepSeek;
  shape.tokens = 60;
  const GateProblem all = harness::draw(shape);
  const GateOutputs want = gate_outputs(device, all);
  for (const int64_t tokens : {1, 7, 9, 25}) {
    GateProblem few = all;
    few.shape.tokens = tokens;
    few.logits.resize(static_cast<size_t>(tokens * shape.experts));
    const GateOutputs got = gate_outputs(device, few);
    EXPECT_TRUE(std::equal(got.ids.begin(), got.ids.end(), want.ids.begin())) << tokens;
    EXPECT_TRUE(std::equal(got.weights.begin(), got.weights.end(), want.weights.begin())) << tokens;
  }
}

TEST_P(GatePromises, TheOrderOfAllTies) {
  for (const int32_t experts : {8, 60, 256, 512, 700}) {
    const GateProblem problem = harness::draw({.tokens = 3,
                                               .experts = experts,
                                               .top_k = 5,
                                               .weights = TY_GATE_RENORMALIZED,
                                               .logits = harness::Logits::kNan});
    const GateOutputs got = gate_outputs(device, problem);
    EXPECT_EQ(got.ids, (std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4})) << experts;
    EXPECT_EQ(got.weights, std::vector<float>(15, 0.0f)) << experts;
  }
}

// A token's result does not depend on the tokens beside it: rows of nothing, of a few numbers, of equals, and
// of numbers far apart, in one warp.
TEST_P(GatePromises, RowsOfAllKindsSideBySide) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const auto logit = [](size_t kind, size_t expert, float drawn) {
    switch (kind) {
      case 0:
        return kNan;
      case 1:
        return kNothing;
      case 2:
        return expert % 23 == 5 ? drawn : kNan;
      case 3:
        return expert % 41 == 7 ? drawn : kNothing;
      case 4:
        return 1.0f;
      case 5:
        return std::ldexp(drawn, static_cast<int>(expert % 60) - 30);
      default:
        return drawn;
    }
  };
  GateShape sigmoid = deepseek_v3(1);
  sigmoid.groups = sigmoid.kept_groups = 0;
  for (const GateShape& kind : {GateShape{.top_k = 8}, sigmoid, deepseek_v3(1)}) {
    for (const ty_dtype dtype : {TY_FLOAT32, TY_BFLOAT16}) {
      for (const int32_t experts : {128, 256, 512}) {
        GateShape shape = kind;
        if (shape.groups > 0 && experts != 256) continue;
        shape.tokens = 56;
        shape.experts = experts;
        shape.dtype = dtype;
        GateProblem problem = harness::draw(shape);
        for (size_t i = 0; i < problem.logits.size(); ++i) {
          const size_t token = i / static_cast<size_t>(experts);
          const size_t expert = i % static_cast<size_t>(experts);
          problem.logits[i] = logit((token * token + token / 8) % 8, expert, problem.logits[i]);
        }
        SCOPED_TRACE(shape.command());
        expect_gate_right(device, problem);
      }
    }
  }
}

// Rows of 0 to 11 numbers, side by side with whole ones: fewer than K are above what all others equal.
TEST_P(GatePromises, FewNumbersAmongNothing) {
  GateShape plain = deepseek_v3(36);
  plain.groups = plain.kept_groups = 0;
  plain.bias = false;
  for (GateShape shape : {deepseek_v3(36), plain}) {
    for (const float nothing :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      for (const int64_t tokens : {4, 36}) {  // a warp a token, and a few lanes
        shape.tokens = tokens;
        GateProblem problem = harness::draw(shape);
        for (size_t token = 0; token < static_cast<size_t>(tokens); ++token) {
          if (token % 3 == 2) continue;
          for (size_t expert = 0; expert < 256; ++expert) {
            const bool is_number = expert % 23 == 5 && expert / 23 < token % 12;
            if (!is_number) problem.logits[token * 256 + expert] = nothing;
          }
        }
        SCOPED_TRACE(shape.command());
        expect_gate_right(device, problem);
      }
    }
  }
}

std::string explanation(const std::string& device, const GateShape& shape) {
  const ty_gate_args args = harness::gate_args(shape);
  char text[500];
  EXPECT_EQ(ty_gate_explain(device_id(device), &args, text, sizeof text), TY_OK) << ty_last_error();
  return text;
}

// Kernels that count on strides of 32 bits are not chosen for rows that lie farther apart.
TEST_P(GatePromises, RowsFarApart) {
  if (device == "cpu") GTEST_SKIP() << "the CPU has one way";
  for (GateShape shape : {deepseek_v3(100), GateShape{.tokens = 100, .experts = 8, .top_k = 2}}) {
    for (const int64_t stride : {int64_t{0xfffffff0}, int64_t{1} << 32}) {
      shape.row_stride = stride;
      EXPECT_EQ(explanation(device, shape).find("for any shape") != std::string::npos, stride >> 32 != 0)
          << stride;
    }
  }
}

// Large batches of 16-bit logits are sorted packed, unless a bias or groups are in the way.
TEST_P(GatePromises, PacksSixteenBitLogits) {
  if (device == "cpu") GTEST_SKIP() << "the CPU has one way";
  const auto packs = [&](const GateShape& shape) {
    return explanation(device, shape).find("packed and sorted") != std::string::npos;
  };
  GateShape shape{.tokens = 5000, .experts = 128, .top_k = 8, .dtype = TY_BFLOAT16};
  EXPECT_TRUE(packs(shape));
  shape.dtype = TY_FLOAT16;
  EXPECT_TRUE(packs(shape));
  shape.dtype = TY_FLOAT32;
  EXPECT_FALSE(packs(shape));
  EXPECT_FALSE(packs(deepseek_v3(5000)));
}

// Experts that a bias lifts above all others are chosen by their ids, whatever their logits.
TEST_P(GatePromises, LargeBiases) {
  GateShape shape = deepseek_v3(9);
  shape.groups = shape.kept_groups = 0;
  shape.top_k = 2;
  for (const int32_t experts : {128, 256, 512}) {
    shape.experts = experts;
    for (const float bias : {1e30f, 1e38f, 3e38f}) {
      GateProblem problem = harness::draw(shape);
      std::fill(problem.bias.begin(), problem.bias.end(), 0.0f);
      for (size_t expert = 0; expert < 24; expert += 4) problem.bias[expert] = bias;
      for (size_t i = 0; i < problem.logits.size(); ++i) {
        const size_t expert = i % static_cast<size_t>(experts);
        if (expert == 4 || expert == 8) problem.logits[i] = std::numeric_limits<float>::infinity();
      }
      const GateOutputs got = gate_outputs(device, problem);
      for (size_t token = 0; token < 9; ++token) {
        EXPECT_EQ(got.ids[2 * token], 0) << experts << " experts, bias " << bias;
        EXPECT_EQ(got.ids[2 * token + 1], 4) << experts << " experts, bias " << bias;
      }
    }
  }
}

// Of groups whose best is a zero, of either sign, the first are kept.
TEST_P(GatePromises, ZerosOfEitherSignAreEqual) {
  GateShape softmax{.top_k = 6, .groups = 8, .kept_groups = 3};
  for (const ty_dtype dtype : {TY_FLOAT32, TY_BFLOAT16}) {
    for (const int32_t experts : {16, 160, 256}) {
      for (const int64_t tokens : {4, 256}) {  // a warp a token, and a few lanes
        softmax.tokens = tokens;
        softmax.dtype = dtype;
        softmax.experts = experts;
        GateProblem problem = harness::draw(softmax);
        const auto all = static_cast<size_t>(experts);
        const size_t of_group = all / 8;
        for (size_t i = 0; i < problem.logits.size(); ++i) {
          const size_t token = i / all * 37;
          const size_t group = i % all / of_group;
          const bool is_best = i % of_group == (token + group) % of_group;
          problem.logits[i] = !is_best ? -1.0f : (token >> group & 1) != 0 ? 0.0f : -0.0f;
        }
        SCOPED_TRACE(softmax.command());
        expect_gate_right(device, problem);
      }
    }
  }
}

// Where the kept groups have fewer numbers than K, the first experts of all follow, of other groups as well,
// with the weights that they have.
TEST_P(GatePromises, FewNumbersInTheKeptGroups) {
  GateShape softmax{.top_k = 6, .groups = 8, .kept_groups = 3};
  for (GateShape shape : {deepseek_v3(1), softmax}) {
    for (const ty_dtype dtype : {TY_FLOAT32, TY_BFLOAT16}) {
      for (const int32_t experts : {160, 256}) {
        for (const float nothing :
             {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
          for (const int64_t tokens : {4, 36}) {  // a warp a token, and a few lanes
            shape.tokens = tokens;
            shape.dtype = dtype;
            shape.experts = experts;
            GateProblem problem = harness::draw(shape);
            const auto all = static_cast<size_t>(experts);
            const size_t of_group = all / 8;
            for (size_t i = 0; i < problem.logits.size(); ++i) {
              const size_t group = i % all / of_group;
              if (group < 8 - static_cast<size_t>(shape.kept_groups)) continue;
              const size_t number = (i / all + 2 * group) % of_group;  // the only one in its group
              problem.logits[i] = i % of_group == number ? 9.0f : nothing;
            }
            SCOPED_TRACE(shape.command());
            expect_gate_right(device, problem);
          }
        }
      }
    }
  }
}

// A rank's tokens spread evenly over an expert's replicas.
TEST_P(GatePromises, ReplicasShareTheLoad) {
  GateProblem problem = harness::draw({.tokens = 3000, .experts = 2, .top_k = 1, .replicas = 4});
  std::fill(problem.num_replicas.begin(), problem.num_replicas.end(), 4);
  const GateOutputs got = gate_outputs(device, problem);
  for (size_t physical = 0; physical < got.physical_counts.size(); ++physical) {
    EXPECT_NEAR(got.physical_counts[physical], 3000.0 / 8, 75) << physical;
  }
}

}  // namespace
}  // namespace tokenyard::test
