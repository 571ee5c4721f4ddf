// Workspaces: what is refused when one is made and when one is used.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "scripted_backend.hpp"
#include "valid_call.hpp"

namespace tokenyard::test {
namespace {

constexpr ty_device kDevice{kScriptedBackend, 0};
constexpr ty_device kOtherDevice{kScriptedBackend, 1};
constexpr size_t kNeeded = 512;

struct Destroy {
  void operator()(ty_workspace* workspace) const { ty_workspace_destroy(workspace); }
};
using Handle = std::unique_ptr<ty_workspace, Destroy>;

class Workspaces : public testing::Test {
 protected:
  Workspaces() { script.workspace_bytes = kNeeded; }

  Handle create(ty_device device, size_t bytes) {
    ty_workspace* made = nullptr;
    EXPECT_EQ(ty_workspace_create(device, memory, bytes, nullptr, &made), TY_OK) << ty_last_error();
    return Handle(made);
  }

  void expect_not_created(void* at, size_t bytes, void* stream, const std::string& says) {
    int something = 0;
    auto* made = reinterpret_cast<ty_workspace*>(&something);
    EXPECT_EQ(ty_workspace_create(kDevice, at, bytes, stream, &made), TY_INVALID_ARGUMENT);
    EXPECT_EQ(made, nullptr);
    expect_message("workspace_create: " + says);
  }

  static void expect_message(const std::string& begins) {
    const std::string message = ty_last_error();
    EXPECT_EQ(message.substr(0, begins.size()), begins) << message;
    EXPECT_NE(message.find("expected"), std::string::npos) << message;
  }

  Script& script = restart_script();
  ValidCall call;
  alignas(256) unsigned char memory[1024];
};

TEST_F(Workspaces, ArePreparedWithZeros) {
  std::memset(memory, 0xEE, sizeof memory);
  const Handle workspace = create(kDevice, kNeeded);
  EXPECT_NE(workspace, nullptr);
  EXPECT_EQ(std::count(memory, memory + kNeeded, 0), static_cast<ptrdiff_t>(kNeeded));
  EXPECT_EQ(std::count(memory + kNeeded, memory + sizeof memory, 0xEE),
            static_cast<ptrdiff_t>(sizeof memory - kNeeded));
}

TEST_F(Workspaces, ReachTheOperation) {
  const Handle workspace = create(kDevice, sizeof memory);
  Workspace seen;
  script.run = [&](const Workspace& given) {
    seen = given;
    return Status();
  };
  ASSERT_EQ(ty_align(kDevice, &call.args, workspace.get(), nullptr), TY_OK) << ty_last_error();
  EXPECT_EQ(seen.memory, memory);
  EXPECT_EQ(seen.bytes, sizeof memory);
}

TEST_F(Workspaces, OperationsThatNeedNoneTakeNone) {
  script.workspace_bytes = 0;
  EXPECT_EQ(ty_align(kDevice, &call.args, nullptr, nullptr), TY_OK) << ty_last_error();
}

TEST_F(Workspaces, TheSizeQueryNeedsNoPointers) {
  call.args.topk_ids = nullptr;
  call.args.sorted_pair_ids = call.args.block_expert = call.args.num_padded = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(ty_align_workspace_size(kDevice, &call.args, &bytes), TY_OK) << ty_last_error();
  EXPECT_EQ(bytes, kNeeded);
}

TEST_F(Workspaces, MissingIsRefused) {
  EXPECT_EQ(ty_align(kDevice, &call.args, nullptr, nullptr), TY_WORKSPACE_REQUIRED);
  expect_message("align: workspace is NULL, expected one of at least 512 bytes");
}

TEST_F(Workspaces, TooSmallIsRefused) {
  const Handle workspace = create(kDevice, kNeeded - 1);
  EXPECT_EQ(ty_align(kDevice, &call.args, workspace.get(), nullptr), TY_WORKSPACE_REQUIRED);
  expect_message("align: workspace has 511 bytes, expected at least 512");
}

TEST_F(Workspaces, OfAnotherDeviceIsRefused) {
  const Handle workspace = create(kOtherDevice, kNeeded);
  EXPECT_EQ(ty_align(kDevice, &call.args, workspace.get(), nullptr), TY_WORKSPACE_REQUIRED);
  expect_message("align: workspace was prepared for device 1000:1, expected 1000:0");
}

TEST_F(Workspaces, CreationRefusesWhatItCannotPrepare) {
  expect_not_created(nullptr, kNeeded, nullptr, "memory is 0");
  expect_not_created(memory + 128, kNeeded, nullptr, "memory is 0x");
  expect_not_created(memory, 0, nullptr, "bytes is 0,");
  EXPECT_EQ(script.filled_bytes, 0);
}

TEST_F(Workspaces, CreationRefusesAStreamThatIsBeingCaptured) {
  int stream = 0;
  script.captured_stream = &stream;
  expect_not_created(memory, kNeeded, &stream, "stream is being captured,");
  EXPECT_EQ(script.filled_bytes, 0);
}

TEST_F(Workspaces, CreationRefusesAMissingDevice) {
  ty_workspace* made = nullptr;
  EXPECT_EQ(ty_workspace_create({kScriptedBackend, 2}, memory, kNeeded, nullptr, &made), TY_INVALID_ARGUMENT);
  expect_message("device: ordinal is 2, expected 0 to 1");
  EXPECT_EQ(made, nullptr);
}

TEST_F(Workspaces, CreationNeedsAPlaceForTheHandle) {
  EXPECT_EQ(ty_workspace_create(kDevice, memory, kNeeded, nullptr, nullptr), TY_INVALID_ARGUMENT);
  expect_message(
      "workspace_create: workspace is NULL, expected where to put the handle: pass the address of a "
      "ty_workspace*");
}

TEST_F(Workspaces, MemoryForOneCallIsPreparedByIt) {
  std::memset(memory, 0xEE, sizeof memory);
  Workspace seen;
  script.run = [&](const Workspace& given) {
    seen = given;
    EXPECT_EQ(std::count(memory, memory + kNeeded, 0), static_cast<ptrdiff_t>(kNeeded));
    return Status();
  };
  ASSERT_EQ(ty_align_once(kDevice, &call.args, memory, sizeof memory, nullptr), TY_OK) << ty_last_error();
  EXPECT_EQ(seen.memory, memory);
  EXPECT_EQ(std::count(memory + kNeeded, memory + sizeof memory, 0xEE),
            static_cast<ptrdiff_t>(sizeof memory - kNeeded));
}

TEST_F(Workspaces, MemoryForOneCallMayBePreparedInACapture) {
  int stream = 0;
  script.captured_stream = &stream;
  EXPECT_EQ(ty_align_once(kDevice, &call.args, memory, kNeeded, &stream), TY_OK) << ty_last_error();
  EXPECT_EQ(script.filled_bytes, static_cast<int>(kNeeded));
}

TEST_F(Workspaces, TheSizeOfMemoryForOneCallNeedsAPlace) {
  size_t bytes = 0;
  ASSERT_EQ(ty_align_once_size(kDevice, &call.args, &bytes), TY_OK) << ty_last_error();
  EXPECT_EQ(bytes, kNeeded);
  EXPECT_EQ(ty_align_once_size(kDevice, &call.args, nullptr), TY_INVALID_ARGUMENT);
  expect_message("align_once_size: bytes is NULL,");
}

TEST_F(Workspaces, NoMemoryWhereNoneIsNeeded) {
  script.workspace_bytes = 0;
  EXPECT_EQ(ty_align_once(kDevice, &call.args, nullptr, 0, nullptr), TY_OK) << ty_last_error();
}

TEST_F(Workspaces, MemoryForOneCallMustSuffice) {
  script.run = [](const Workspace&) { return Status(TY_DEVICE_ERROR, "ran"); };
  EXPECT_EQ(ty_align_once(kDevice, &call.args, memory, kNeeded - 1, nullptr), TY_WORKSPACE_REQUIRED);
  expect_message("align: memory has 511 bytes, expected at least 512");
  EXPECT_EQ(ty_align_once(kDevice, &call.args, memory + 128, kNeeded, nullptr), TY_INVALID_ARGUMENT);
  expect_message("align: memory is 0x");
  EXPECT_EQ(ty_align_once(kDevice, &call.args, nullptr, kNeeded, nullptr), TY_INVALID_ARGUMENT);
  expect_message("align: memory is 0,");
  call.args.block_size = 0;
  EXPECT_EQ(ty_align_once(kDevice, &call.args, memory, kNeeded, nullptr), TY_INVALID_ARGUMENT);
  expect_message("align: block_size is 0,");
  EXPECT_EQ(script.filled_bytes, 0);
}

// Without tokens gate needs nothing of the backend: the memory reaches align.
class RouteMemory : public Workspaces {
 protected:
  RouteMemory() {
    gate.num_experts = 8;
    gate.top_k = 2;
    args.gate = &gate;
    args.align = &call.args;
  }

  ty_gate_args gate = TY_GATE_ARGS_INIT;
  ty_route_args args = TY_ROUTE_ARGS_INIT;
};

TEST_F(RouteMemory, ForOneCallIsPreparedByIt) {
  std::memset(memory, 0xEE, sizeof memory);
  Workspace seen;
  script.run = [&](const Workspace& given) {
    seen = given;
    EXPECT_EQ(std::count(memory, memory + kNeeded, 0), static_cast<ptrdiff_t>(kNeeded));
    return Status();
  };
  ASSERT_EQ(ty_route_once(kDevice, &args, memory, sizeof memory, nullptr), TY_OK) << ty_last_error();
  EXPECT_EQ(seen.memory, memory);
  EXPECT_EQ(script.filled_bytes, static_cast<int>(kNeeded));
}

TEST_F(RouteMemory, ForOneCallMustSuffice) {
  size_t bytes = 0;
  ASSERT_EQ(ty_route_once_size(kDevice, &args, &bytes), TY_OK) << ty_last_error();
  EXPECT_EQ(bytes, kNeeded);
  EXPECT_EQ(ty_route_once_size(kDevice, &args, nullptr), TY_INVALID_ARGUMENT);
  expect_message("route_once_size: bytes is NULL,");
  EXPECT_EQ(ty_route_once(kDevice, &args, memory, kNeeded - 1, nullptr), TY_WORKSPACE_REQUIRED);
  expect_message("route: memory has 511 bytes, expected at least 512: ask ty_route_once_size()");
  EXPECT_EQ(ty_route_once(kDevice, &args, memory + 128, kNeeded, nullptr), TY_INVALID_ARGUMENT);
  expect_message("route: memory is 0x");
  call.args.block_size = 0;
  EXPECT_EQ(ty_route_once(kDevice, &args, memory, kNeeded, nullptr), TY_INVALID_ARGUMENT);
  expect_message("route: align: block_size is 0,");
  EXPECT_EQ(script.filled_bytes, 0);
}

TEST(WorkspaceHandle, NullIsDestroyedSilently) { ty_workspace_destroy(nullptr); }

}  // namespace
}  // namespace tokenyard::test
