# SWEEP_PACKAGE: programs for machines that have nothing of ours. Libraries that come as archives are linked in, fmt and
# spdlog are compiled in; what is left (libcurl and what it needs) goes beside the programs, into ../lib (scripts/package).
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
# RPATH, not RUNPATH: it holds for the libraries of libraries too.
add_link_options(-static-libstdc++ -static-libgcc -Wl,--disable-new-dtags)
find_package(CURL REQUIRED)  # before archives are preferred: libcurl.a needs thirty others
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)

add_library(sweep_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/package/fmt_static.cpp)
target_compile_definitions(sweep_fmt PUBLIC FMT_SHARED)  # as Debian's target says: one set of flags for both builds
add_library(fmt::fmt ALIAS sweep_fmt)
add_library(sweep_spdlog INTERFACE)
target_compile_definitions(sweep_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(sweep_spdlog INTERFACE sweep_fmt)
add_library(spdlog::spdlog ALIAS sweep_spdlog)

find_library(SWEEP_YAML_CPP yaml-cpp REQUIRED)  # the archive; Debian's CMake target names the shared library
add_library(yaml-cpp STATIC IMPORTED GLOBAL)
set_target_properties(yaml-cpp PROPERTIES IMPORTED_LOCATION ${SWEEP_YAML_CPP})
