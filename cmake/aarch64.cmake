# Toolchain for compiling the library for AArch64 on another Debian machine: scripts/check_aarch64.sh. The headers of the
# libraries are the host's (they do not depend on the processor) and come last, behind the cross compiler's own; nothing
# is linked.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_LIBRARY_ARCHITECTURE ${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_PREFIX_PATH /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake)
set(CMAKE_CXX_FLAGS_INIT "-idirafter /usr/include -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}")
