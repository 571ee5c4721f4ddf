#include "conformance.hpp"
#include "float_conformance.hpp"
#include "port/cuda.hpp"
#include "port/cuda_runtime.hpp"

namespace tokenyard::tests {
namespace {

struct Cuda {
  using Port = port::cuda::Port;
  static Runtime& runtime() { return port::cuda::runtime(); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, Conformance, Cuda);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, FloatConformance, Cuda);

}  // namespace
}  // namespace tokenyard::tests
