# Options. Whatever is set here holds for this directory and those below: a project that takes Tokenyard in
# with add_subdirectory() or FetchContent keeps its own flags.

# nvcc is often installed without being on PATH.
find_program(TOKENYARD_NVCC nvcc PATHS /usr/local/cuda/bin DOC "CUDA compiler")
mark_as_advanced(TOKENYARD_NVCC)
if(TOKENYARD_NVCC OR CMAKE_CUDA_COMPILER)
  set(cuda_found ON)
else()
  set(cuda_found OFF)
endif()

option(TOKENYARD_CUDA "Build the CUDA backend" ${cuda_found})
option(TOKENYARD_HIP "Build the HIP backend" OFF)
option(TOKENYARD_BUILD_TOOLS "Build the tokenyard command and the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(TOKENYARD_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(TOKENYARD_PYTHON "Build what the Python package loads; pip sets it" OFF)
set(TOKENYARD_SANITIZE "" CACHE STRING "Sanitizers: address (with undefined), thread, fuzzer (address and coverage), or none")
set_property(CACHE TOKENYARD_SANITIZE PROPERTY STRINGS "" address thread fuzzer)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(PROJECT_IS_TOP_LEVEL)
  # Kernels say #pragma unroll, which g++ does not know; g++ 12 takes parts of <string>
  # and <regex> for mistakes.
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wno-unknown-pragmas>"
                      "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-maybe-uninitialized>"
                      "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

if(TOKENYARD_SANITIZE STREQUAL "address")
  set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(TOKENYARD_SANITIZE STREQUAL "thread")
  set(sanitizers -fsanitize=thread)
elseif(TOKENYARD_SANITIZE STREQUAL "fuzzer")  # clang; coverage for the fuzzer that tests/fuzz links
  set(sanitizers -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all)
elseif(NOT TOKENYARD_SANITIZE STREQUAL "")
  message(FATAL_ERROR "TOKENYARD_SANITIZE is \"${TOKENYARD_SANITIZE}\", expected address, thread, fuzzer or nothing")
endif()
if(TOKENYARD_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${sanitizers};-fno-omit-frame-pointer>")
  add_link_options(${sanitizers})
endif()

# For programs whose own code need not be fast, unlike the libraries under them: it compiles in half the time.
function(tokenyard_compile_quickly target)
  if(TOKENYARD_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  else()
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  endif()
endfunction()
