# Toolchain: the torch-free half for aarch64, on an x86_64 machine, by Debian's cross compiler. scripts/sysroot fills the folder of
# libraries; programs and tests run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(sysroot ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-aarch64)
if(DEFINED ENV{SWEEP_SYSROOT})
  set(sysroot $ENV{SWEEP_SYSROOT})
endif()
get_filename_component(sysroot ${sysroot} ABSOLUTE)
if(NOT EXISTS ${sysroot}/usr/include/sqlite3.h)
  message(FATAL_ERROR "${sysroot} holds no libraries for aarch64: run scripts/sysroot, or name its folder in SWEEP_SYSROOT.")
endif()
set(CMAKE_FIND_ROOT_PATH ${sysroot})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${sysroot}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${sysroot})
set(ENV{PKG_CONFIG_MAXIMUM_TRAVERSE_DEPTH} 1)  # of libraries that are only loaded, what they need is not there
set(CMAKE_CXX_FLAGS_INIT "-isystem ${sysroot}/usr/include")  # headers of libraries that have no target of their own
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
