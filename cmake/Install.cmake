# cmake --install: the programs of the torch-free half, and the schema library for programs that read or write spools and trials:
#   find_package(sweep 0.1 REQUIRED)   target_link_libraries(mine PRIVATE sweep::schema)
# sweep-rank is not installed: it belongs to one LibTorch; scripts/deploy brings both to where they run.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sweep)
set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/sweep)

install(TARGETS sweep sweep-agent RUNTIME COMPONENT programs)
set_target_properties(sweep_schema PROPERTIES EXPORT_NAME schema)
target_include_directories(sweep_schema PUBLIC $<INSTALL_INTERFACE:${header_dir}>)
install(TARGETS sweep_base sweep_schema EXPORT sweep-targets ARCHIVE COMPONENT schema)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/base ${PROJECT_SOURCE_DIR}/schema ${PROJECT_BINARY_DIR}/generated/schema DESTINATION ${header_dir} COMPONENT schema
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/schema/json DESTINATION ${CMAKE_INSTALL_DATADIR}/sweep COMPONENT schema)
install(EXPORT sweep-targets NAMESPACE sweep:: DESTINATION ${package_dir} COMPONENT schema)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/sweep-config.cmake.in ${PROJECT_BINARY_DIR}/sweep-config.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sweep-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sweep-config.cmake ${PROJECT_BINARY_DIR}/sweep-config-version.cmake
  DESTINATION ${package_dir} COMPONENT schema)
