// Linked calls: a device may begin one while the one before it still runs. On the executor a kernel that
// touches memory too early is an error; on a card this shows with luck, and tests/gpu tries often.
#include <gtest/gtest.h>

#include <string>

#include "chain.hpp"
#include "device.hpp"
#include "harness/problem.hpp"
#include "runs.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::test {
namespace {

class Linked : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { TY_SKIP_IF_MISSING(device); }
  const std::string device = GetParam();
};

INSTANTIATE_TEST_SUITE_P(Align, Linked, testing::ValuesIn(kRealDevices),
                         [](const auto& info) { return info.param; });

TEST_P(Linked, SortsWhatTheCallBeforeHasWritten) {
  for (const ty_align_path path : {TY_ALIGN_AUTO, TY_ALIGN_GRID, TY_ALIGN_SPLIT}) {
    for (const int64_t tokens : {5, 150}) {
      const harness::AlignShape shape{.tokens = tokens, .top_k = 4, .experts = 20, .block = 4};
      Chain chain(device, harness::draw(shape),
                  {.path = path, .optional_outputs = tokens > 5, .linked = true});
      chain.poison();
      require(chain.launch(nullptr));
      require(find_backend(device)->runtime->synchronize(nullptr));
      EXPECT_EQ(chain.difference(), "") << path_name(path) << ", " << shape.command();
    }
  }
}

TEST_P(Linked, IsPartOfTheExplanation) {
  if (device == "cpu") GTEST_SKIP() << "a call ends before it returns";
  const DeviceProperties* properties = nullptr;
  const Backend* backend = nullptr;
  require(find_device(device_id(device), &backend, &properties));
  ty_align_args args = harness::align_args({.tokens = 100, .top_k = 4, .experts = 20});
  for (const bool linked : {false, true}) {
    args.linked = linked ? 1 : 0;
    char text[500];
    ASSERT_EQ(ty_align_explain(device_id(device), &args, text, sizeof text), TY_OK);
    const std::string words(text);
    EXPECT_EQ(words.find("linked") != std::string::npos, linked) << words;
    EXPECT_EQ(words.find("not linked") != std::string::npos, linked && !properties->linked) << words;
  }
}

}  // namespace
}  // namespace tokenyard::test
