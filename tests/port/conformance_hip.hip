#include "conformance.hpp"
#include "float_conformance.hpp"
#include "port/hip.hpp"
#include "port/hip_runtime.hpp"

namespace tokenyard::tests {
namespace {

struct Hip {
  using Port = port::hip::Port;
  static Runtime& runtime() { return port::hip::runtime(); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Hip, Conformance, Hip);
INSTANTIATE_TYPED_TEST_SUITE_P(Hip, FloatConformance, Hip);

}  // namespace
}  // namespace tokenyard::tests
