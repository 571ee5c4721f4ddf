# Lays Debian's HIP packages out as one ROCm tree, the way clang and CMake expect it:
#   cmake -D root=<folder> -P cmake/debian_rocm.cmake
# Nothing outside <folder> is written. Packages: libamdhip64-dev rocm-device-libs llvm-19.

set(system /usr/lib/x86_64-linux-gnu)
file(REMOVE_RECURSE ${root})
file(MAKE_DIRECTORY ${root}/lib/cmake ${root}/amdgcn/bitcode)
file(CREATE_LINK /usr/include ${root}/include SYMBOLIC)
file(CREATE_LINK ${system}/libamdhip64.so ${root}/lib/libamdhip64.so SYMBOLIC)
file(CREATE_LINK /usr/lib/cmake/AMDDeviceLibs ${root}/lib/cmake/AMDDeviceLibs SYMBOLIC)
foreach(package IN ITEMS amd_comgr hip hip-lang hsa-runtime64)
  file(CREATE_LINK ${system}/cmake/${package} ${root}/lib/cmake/${package} SYMBOLIC)
endforeach()

file(GLOB bitcode ${system}/amdgcn/bitcode/*.bc)
if(NOT bitcode)
  message(FATAL_ERROR "No ${system}/amdgcn/bitcode/*.bc, expected the package rocm-device-libs: install it")
endif()
foreach(file IN LISTS bitcode)
  get_filename_component(name ${file} NAME)
  file(COPY_FILE ${file} ${root}/amdgcn/bitcode/${name})
endforeach()

# The package is older than gfx942. The file of an ISA holds nothing but its number: derive it from gfx940's.
set(isa ${root}/amdgcn/bitcode/oclc_isa_version)
execute_process(COMMAND llvm-dis-19 ${isa}_940.bc -o - OUTPUT_VARIABLE module COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "9400" "9402" module "${module}")
file(WRITE ${isa}_942.ll "${module}")
execute_process(COMMAND llvm-as-19 ${isa}_942.ll -o ${isa}_942.bc COMMAND_ERROR_IS_FATAL ANY)
