# tokenyard       the public library, shared or static by BUILD_SHARED_LIBS; its interface is the C ABI
# tokenyard_core  the same objects and the sequential reference, with src/ on the include path: what the
#                 tools and tests of this repository link

find_package(Threads REQUIRED)

add_library(tokenyard_objects OBJECT
  src/align/backend_cpu.cpp
  src/align/contract.cpp
  src/align/cpu.cpp
  src/align/plan.cpp
  src/gate/backend_cpu.cpp
  src/gate/contract.cpp
  src/gate/cpu.cpp
  src/gate/cpu_scores.cpp
  src/gate/plan.cpp
  src/gate/run.cpp
  src/port/cpu_runtime.cpp
  src/route/contract.cpp
  src/route/plan.cpp
  src/route/run.cpp
  src/runtime/api.cpp
  src/runtime/backend.cpp
  src/training/backend_cpu.cpp
  src/training/contract.cpp
  src/training/cpu_backward.cpp
  src/training/cpu_balance.cpp
  src/training/cpu_loss.cpp)
target_include_directories(tokenyard_objects PUBLIC
  ${PROJECT_SOURCE_DIR}           # tuning/
  ${PROJECT_SOURCE_DIR}/src
  ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(tokenyard_objects PUBLIC Threads::Threads)
# A product and a sum are rounded one by one unless fmaf() says otherwise: gate gives the same bits everywhere.
target_compile_options(tokenyard_objects PUBLIC "$<$<COMPILE_LANGUAGE:CXX,HIP>:-ffp-contract=off>"
                                                "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false>")
if(TOKENYARD_CUDA)
  include(cmake/cuda.cmake)
endif()
if(TOKENYARD_HIP)
  include(cmake/hip.cmake)
endif()

add_library(tokenyard $<TARGET_OBJECTS:tokenyard_objects>)
add_library(tokenyard::tokenyard ALIAS tokenyard)
target_include_directories(tokenyard INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                               $<INSTALL_INTERFACE:include>)
target_link_libraries(tokenyard PRIVATE Threads::Threads ${TOKENYARD_DRIVER_LIBRARIES})
set_target_properties(tokenyard PROPERTIES
  LINKER_LANGUAGE CXX
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
# Hidden visibility leaves the templates of the standard library and static dependencies visible; this does not.
target_link_options(tokenyard PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)

if(TOKENYARD_BUILD_TOOLS OR TOKENYARD_BUILD_TESTS)
  add_library(tokenyard_core STATIC src/align/reference.cpp src/gate/reference.cpp src/training/reference.cpp)
  target_link_libraries(tokenyard_core PUBLIC tokenyard_objects ${TOKENYARD_DRIVER_LIBRARIES})
endif()
