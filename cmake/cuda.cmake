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
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)

target_sources(tokenyard_objects PRIVATE src/align/backend_cuda.cu src/port/cuda_runtime.cu)
target_compile_options(tokenyard_objects PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
  $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>)
target_compile_definitions(tokenyard_objects PUBLIC TOKENYARD_CUDA)
list(APPEND TOKENYARD_DRIVER_LIBRARIES CUDA::cudart_static)
