# What stands around the library: the SIMT executor with its backends, the harness and the command.

# Only Debian's and conda's Boost have a config file; the module finds the others too.
find_package(Boost 1.74 COMPONENTS context)
if(Boost_CONTEXT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/src/port/simt/CMakeLists.txt)
  add_subdirectory(src/port/simt)
  add_library(tokenyard_simt STATIC src/align/backend_simt.cpp)
  target_link_libraries(tokenyard_simt PUBLIC tokenyard_core tokenyard_simt_executor)
  target_compile_definitions(tokenyard_simt INTERFACE TOKENYARD_SIMT)
endif()

foreach(folder IN ITEMS bench/harness cli)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  endif()
endforeach()
