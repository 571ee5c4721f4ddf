# The CUDA backend: cubins for the cards it is tuned for, PTX for newer ones.

if(NOT CMAKE_CUDA_COMPILER AND TOKENYARD_NVCC)
  set(CMAKE_CUDA_COMPILER ${TOKENYARD_NVCC})
endif()
find_package(CUDAToolkit 12.0 REQUIRED)
if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
  set(architectures 80-real 90a-real 100-virtual)
else()
  set(architectures 80-real 90a-real 90-virtual)
endif()
set(TOKENYARD_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "As CMAKE_CUDA_ARCHITECTURES")
set(CMAKE_CUDA_ARCHITECTURES ${TOKENYARD_CUDA_ARCHITECTURES})
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know that nvcc has it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()

target_sources(tokenyard_objects PRIVATE
  src/align/backend_cuda.cu
  src/gate/backend_cuda.cu
  src/port/cuda_runtime.cu
  src/route/backend_cuda.cu
  src/training/backend_cuda.cu)
set_target_properties(tokenyard_objects PROPERTIES
  CUDA_ARCHITECTURES "${TOKENYARD_CUDA_ARCHITECTURES}"
  CUDA_STANDARD 20
  CUDA_VISIBILITY_PRESET hidden)
target_compile_options(tokenyard_objects PUBLIC "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-lineinfo>")
target_compile_definitions(tokenyard_objects PUBLIC TOKENYARD_CUDA)
list(APPEND TOKENYARD_DRIVER_LIBRARIES CUDA::cudart_static)
