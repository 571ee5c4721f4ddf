include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tokenyard)
install(TARGETS tokenyard EXPORT tokenyard)
install(DIRECTORY include/tokenyard TYPE INCLUDE)
install(EXPORT tokenyard NAMESPACE tokenyard:: FILE tokenyard-targets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/tokenyard-config.cmake.in ${PROJECT_BINARY_DIR}/tokenyard-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the ABI.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tokenyard-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tokenyard-config.cmake
              ${PROJECT_BINARY_DIR}/tokenyard-config-version.cmake DESTINATION ${package_dir})
if(TARGET tokenyard_cli)
  install(TARGETS tokenyard_cli)
endif()
