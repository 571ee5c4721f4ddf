# What stands around the library: the SIMT executor with its backends, the harness, the baselines and the command.

find_package(Boost 1.74 COMPONENTS context)
if(Boost_CONTEXT_FOUND)
  add_subdirectory(src/port/simt)
  add_library(tokenyard_simt STATIC src/align/backend_simt.cpp src/gate/backend_simt.cpp
              src/route/backend_simt.cpp src/training/backend_simt.cpp)
  target_link_libraries(tokenyard_simt PUBLIC tokenyard_core tokenyard_simt_executor)
  target_compile_definitions(tokenyard_simt INTERFACE TOKENYARD_SIMT)
else()
  message(STATUS "No SIMT executor: expected Boost.Context, which runs its threads")
endif()

add_subdirectory(bench/harness)
if(TOKENYARD_CUDA)
  add_subdirectory(bench/baselines)  # tokenyard_baselines
  add_subdirectory(bench/profile)  # tokenyard_profile
  option(TOKENYARD_CANDIDATES "Build the launches that tuning chooses from, for bench --candidates" OFF)
  if(TOKENYARD_CANDIDATES)
    add_subdirectory(bench/candidates)  # tokenyard_candidates
  endif()
endif()
add_subdirectory(cli)
