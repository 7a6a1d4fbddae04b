# SWEEP_PACKAGE: programs for machines that have nothing of ours. Libraries that come as archives are linked in, fmt and
# spdlog are compiled in, and libcurl, which brings thirty others, is loaded when something is sent. glibc is what is left.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
# RPATH, not RUNPATH: it holds for the libraries of libraries too.
if(SWEEP_WITH_RANK)  # in a wheel beside torch's, whose libstdc++ it shares
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../../torch/lib" "$ORIGIN/../../nvidia/cu13/lib")
  add_link_options(-Wl,--disable-new-dtags)
else()
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--disable-new-dtags)
endif()
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)

add_library(sweep_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/package/fmt_static.cpp)
set_target_properties(sweep_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)  # the GPU plug-in, a shared library, holds it too
target_compile_definitions(sweep_fmt PUBLIC FMT_SHARED)  # as Debian's target says: one set of flags for both builds
add_library(fmt::fmt ALIAS sweep_fmt)
add_library(sweep_spdlog INTERFACE)
target_compile_definitions(sweep_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(sweep_spdlog INTERFACE sweep_fmt)
add_library(spdlog::spdlog_header_only ALIAS sweep_spdlog)

find_library(SWEEP_YAML_CPP yaml-cpp REQUIRED)  # the archive; Debian's CMake target names the shared library
add_library(yaml-cpp STATIC IMPORTED GLOBAL)
set_target_properties(yaml-cpp PROPERTIES IMPORTED_LOCATION ${SWEEP_YAML_CPP})

find_path(SWEEP_CURL_HEADERS curl/curl.h REQUIRED)
add_library(sweep_curl STATIC ${CMAKE_CURRENT_LIST_DIR}/package/curl_loaded.cpp)
target_include_directories(sweep_curl SYSTEM PUBLIC ${SWEEP_CURL_HEADERS})
target_link_libraries(sweep_curl PUBLIC ${CMAKE_DL_LIBS})
add_library(CURL::libcurl ALIAS sweep_curl)
