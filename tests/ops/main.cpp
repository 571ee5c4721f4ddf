#include <gtest/gtest.h>

#ifdef TOKENYARD_SIMT
#include "align/backend_simt.hpp"
#include "gate/backend_simt.hpp"
#include "route/backend_simt.hpp"
#include "training/backend_simt.hpp"
#endif

int main(int argc, char** argv) {
#ifdef TOKENYARD_SIMT
  tokenyard::register_simt_backends();
  tokenyard::gate::register_simt_operations();
  tokenyard::route::register_simt_operations();
  tokenyard::training::register_simt_operations();
#endif
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
