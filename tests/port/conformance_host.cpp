#include "conformance.hpp"
#include "float_conformance.hpp"
#include "port/host.hpp"
#include "port/host_runtime.hpp"

namespace tokenyard::tests {
namespace {

template <int WarpSize>
struct Host {
  using Port = port::host::Port<WarpSize>;
  static Runtime& runtime() { return port::host::runtime<WarpSize>(); }
};

using HostTargets = testing::Types<Host<32>, Host<64>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Host, Conformance, HostTargets);
INSTANTIATE_TYPED_TEST_SUITE_P(Host, FloatConformance, HostTargets);

}  // namespace
}  // namespace tokenyard::tests
