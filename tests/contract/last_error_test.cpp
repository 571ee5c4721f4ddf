// ty_last_error(): the calling thread's last call, nobody else's.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "scripted_backend.hpp"
#include "valid_call.hpp"

namespace tokenyard::test {
namespace {

TEST(LastError, IsEmptyOnAThreadThatNeverCalled) {
  std::string seen = "not asked";
  std::thread([&] { seen = ty_last_error(); }).join();
  EXPECT_EQ(seen, "");
}

TEST(LastError, IsOfTheLastCall) {
  ValidCall call;
  call.args.top_k = 0;
  ASSERT_EQ(ty_align(kCpu, &call.args, nullptr, nullptr), TY_INVALID_ARGUMENT);
  EXPECT_NE(std::string(ty_last_error()).find("top_k"), std::string::npos);
  call.args.top_k = 2;
  call.args.path = 9;
  ASSERT_EQ(ty_align(kCpu, &call.args, nullptr, nullptr), TY_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(ty_last_error()).find("top_k"), std::string::npos);
  EXPECT_NE(std::string(ty_last_error()).find("path"), std::string::npos);
  call.args.path = TY_ALIGN_AUTO;
  ASSERT_EQ(ty_align(kCpu, &call.args, nullptr, nullptr), TY_OK);
  EXPECT_STREQ(ty_last_error(), "");
}

TEST(LastError, OutlivesCallsThatCannotFail) {
  ASSERT_EQ(ty_align(kCpu, nullptr, nullptr, nullptr), TY_INVALID_ARGUMENT);
  ty_version();
  ty_align_capacity(1, 1, 1);
  ty_best_device();
  EXPECT_NE(std::string(ty_last_error()).find("args is NULL"), std::string::npos);
}

TEST(LastError, IsNotSharedBetweenThreads) {
  ASSERT_EQ(ty_align(kCpu, nullptr, nullptr, nullptr), TY_INVALID_ARGUMENT);
  const std::string mine = ty_last_error();
  std::string theirs;
  std::thread([&] {
    ValidCall call;
    call.args.block_size = 0;
    ty_align(kCpu, &call.args, nullptr, nullptr);
    theirs = ty_last_error();
  }).join();
  EXPECT_NE(theirs.find("block_size"), std::string::npos);
  EXPECT_EQ(mine, ty_last_error());
}

class LastErrorOfABackend : public testing::Test {
 protected:
  ty_status run(std::function<Status(const Workspace&)> answer) {
    script.run = std::move(answer);
    return ty_align({kScriptedBackend, 0}, &call.args, nullptr, nullptr);
  }

  Script& script = restart_script();
  ValidCall call;
};

TEST_F(LastErrorOfABackend, IsItsStatus) {
  EXPECT_EQ(run([](const Workspace&) { return Status(TY_DEVICE_ERROR, "align: the driver said no"); }),
            TY_DEVICE_ERROR);
  EXPECT_STREQ(ty_last_error(), "align: the driver said no");
}

TEST_F(LastErrorOfABackend, NoExceptionLeavesTheAbi) {
  EXPECT_EQ(run([](const Workspace&) -> Status { throw std::bad_alloc(); }), TY_OUT_OF_MEMORY);
  EXPECT_EQ(run([](const Workspace&) -> Status { throw std::runtime_error("no more threads"); }),
            TY_DEVICE_ERROR);
  EXPECT_STREQ(ty_last_error(), "no more threads");
}

}  // namespace
}  // namespace tokenyard::test
