# The HIP backend, as CMake's HIP language compiles it on a machine with ROCm. On Debian, whose packages lie
# apart, cmake/debian_rocm.cmake first lays them out as one tree.

set(TOKENYARD_HIP_ARCHITECTURES gfx908 gfx90a gfx942 CACHE STRING "As CMAKE_HIP_ARCHITECTURES; waves of 64 lanes")
set(CMAKE_HIP_ARCHITECTURES ${TOKENYARD_HIP_ARCHITECTURES})
enable_language(HIP)
find_library(TOKENYARD_AMDHIP64 amdhip64 HINTS ${CMAKE_HIP_COMPILER_ROCM_ROOT}/lib REQUIRED)
mark_as_advanced(TOKENYARD_AMDHIP64)

target_sources(tokenyard_objects PRIVATE src/align/backend_hip.hip src/gate/backend_hip.hip src/port/hip_runtime.hip src/training/backend_hip.hip)
set_target_properties(tokenyard_objects PROPERTIES
  HIP_ARCHITECTURES "${TOKENYARD_HIP_ARCHITECTURES}"
  HIP_STANDARD 20
  HIP_VISIBILITY_PRESET hidden)
target_compile_definitions(tokenyard_objects PUBLIC TOKENYARD_HIP)
list(APPEND TOKENYARD_DRIVER_LIBRARIES ${TOKENYARD_AMDHIP64})
