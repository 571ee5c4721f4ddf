// The C++ layer over gate.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tokenyard/gate.hpp"

namespace {

const tokenyard::GatePreset& preset(const char* name) { return *tokenyard::find_gate_preset(name); }

TEST(GateApi, ChoosesOnTheHost) {
  std::vector<float> logits{0, 3, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1};
  const auto chosen = tokenyard::gate(logits, preset("mixtral-8x7b"));
  EXPECT_EQ(chosen.ids, (std::vector<int32_t>{1, 4, 0, 7}));
  EXPECT_NEAR(chosen.weights[0], 0.7310586, 1e-6);
  EXPECT_NEAR(chosen.weights[3], 0.5, 1e-6);
  EXPECT_EQ(chosen.counts, (std::vector<int32_t>{1, 1, 0, 0, 1, 0, 0, 1}));
}

TEST(GateApi, ThrowsWhatTheLibrarySays) {
  const std::vector<float> logits(256);
  const auto message = [&](auto call) -> std::string {
    try {
      call();
    } catch (const tokenyard::Error& error) {
      EXPECT_EQ(error.status(), TY_INVALID_ARGUMENT);
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message([&] { tokenyard::gate(logits, preset("deepseek-v3")); }).substr(0, 37),
            "gate: bias has 0 numbers, expected 25");
  EXPECT_EQ(message([&] { tokenyard::gate(logits, preset("kimi-k2")); }).substr(0, 28),
            "gate: logits has 256 numbers");
  EXPECT_EQ(message([&] {
              tokenyard::GateArgs args(logits.data(), TY_FLOAT32, 1, 256, 300);
              tokenyard::gate(TY_CPU, args, nullptr);
            }).substr(0, 20),
            "gate: top_k is 300, ");
}

TEST(GateApi, ExplainsItself) {
  const tokenyard::GateArgs args(nullptr, TY_BFLOAT16, 100, preset("deepseek-v3"));
  EXPECT_EQ(args.columns(), 8);
  EXPECT_NE(tokenyard::gate_explain(TY_CPU, args).find("100 rows of 256"), std::string::npos);
}

}  // namespace
