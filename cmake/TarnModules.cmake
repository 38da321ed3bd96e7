# SPDX-License-Identifier: MIT
# Flags that every target has, and functions that build the modules of src/ and their tests.

set(TARN_WARNINGS
    -Wall -Wextra -Wpedantic -Wundef -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes
    -Wmissing-prototypes -Wold-style-definition -Wvla -Wwrite-strings -Wcast-qual -Wcast-align
    -Wpointer-arith -Wswitch-enum -Wformat=2 -Wdouble-promotion -Wnull-dereference
    -Wimplicit-fallthrough)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND TARN_WARNINGS -Wlogical-op -Wduplicated-cond -Wduplicated-branches
        -Wenum-conversion)
else()
    list(APPEND TARN_WARNINGS -Wcomma -Wassign-enum -Wunreachable-code
        -Wno-gnu-zero-variadic-macro-arguments) # the macros of sys/sdt.h
endif()
if(TARN_WERROR)
    list(APPEND TARN_WARNINGS -Werror)
endif()

set(TARN_CHECK_LEVEL_none 0)
set(TARN_CHECK_LEVEL_fast 1)
set(TARN_CHECK_LEVEL_slow 2)

add_library(tarn_flags INTERFACE)
target_compile_options(tarn_flags INTERFACE ${TARN_WARNINGS} -fno-omit-frame-pointer)
target_compile_definitions(tarn_flags INTERFACE
    _POSIX_C_SOURCE=200809L TN_CHECK_LEVEL=${TARN_CHECK_LEVEL_${TARN_CHECKS}})
if(DEFINED TARN_FAST_PATH AND NOT TARN_FAST_PATH) # projects that take only the flags have it
    target_compile_definitions(tarn_flags INTERFACE TN_FAST_PATH=0)
endif()
if(TARN_SDT_INCLUDE)
    target_compile_definitions(tarn_flags INTERFACE TN_HAVE_SDT)
    target_include_directories(tarn_flags SYSTEM INTERFACE ${TARN_SDT_INCLUDE})
endif()
target_include_directories(tarn_flags INTERFACE
    ${CMAKE_CURRENT_LIST_DIR}/../include ${CMAKE_CURRENT_LIST_DIR}/../src)
if(TARN_SANITIZE)
    target_compile_options(tarn_flags INTERFACE -fsanitize=${TARN_SANITIZE}
        -fno-sanitize-recover=undefined)
    target_link_options(tarn_flags INTERFACE -fsanitize=${TARN_SANITIZE})
    # The addresses in their tables of variables are relocated at every start, which takes a third
    # of a short run of the program.
    target_link_options(tarn_flags INTERFACE
        $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
# Hundreds of test programs, each with the modules in it: these take half of what ld takes. What
# users get, and what looks at the libraries, is linked by the compiler's own choice.
if(TARN_BUILD_TESTS)
    include(CheckLinkerFlag)
    foreach(linker IN ITEMS mold lld)
        check_linker_flag(C -fuse-ld=${linker} TARN_LINKS_WITH_${linker})
        if(TARN_LINKS_WITH_${linker})
            target_link_options(tarn_flags INTERFACE
                $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-fuse-ld=${linker}>)
            break()
        endif()
    endforeach()
endif()
# Following comparisons costs two fifths of a fuzz target's speed, and inputs that are made by
# generators or from a dictionary hardly need it.
if(TARN_BUILD_FUZZERS)
    target_compile_options(tarn_flags INTERFACE -fno-sanitize-coverage=trace-cmp)
endif()

# Of what is written in C++, which has none of C's.
add_library(tarn_cxx_flags INTERFACE)
target_compile_options(tarn_cxx_flags INTERFACE -Wall -Wextra -Wpedantic -fno-omit-frame-pointer
    $<$<BOOL:${TARN_WERROR}>:-Werror>)
if(TARN_SANITIZE)
    target_compile_options(tarn_cxx_flags INTERFACE -fsanitize=${TARN_SANITIZE}
        -fno-sanitize-recover=undefined)
    target_link_options(tarn_cxx_flags INTERFACE -fsanitize=${TARN_SANITIZE})
endif()

# Sanitizers see more than these do, and need the plain functions.
if(NOT TARN_SANITIZE)
    include(${CMAKE_CURRENT_LIST_DIR}/TarnHarden.cmake)
    target_compile_options(tarn_flags INTERFACE ${TARN_HARDENING_COMPILE})
    target_link_options(tarn_flags INTERFACE ${TARN_HARDENING_LINK})
endif()

# Users' builds are optimised as a whole: what an allocation passes through is spread over a dozen
# files. The objects hold plain code as well, for whoever links libtarn.a without that.
# Not every gcc is installed whole, so it is tried first.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND
        NOT TARN_SANITIZE AND NOT (DEFINED TARN_LTO AND NOT TARN_LTO))
    include(CheckIPOSupported)
    check_ipo_supported(RESULT TARN_OPTIMISES_AS_A_WHOLE LANGUAGES C)
endif()
if(TARN_OPTIMISES_AS_A_WHOLE)
    target_compile_options(tarn_flags INTERFACE -flto=auto -ffat-lto-objects)
    target_link_options(tarn_flags INTERFACE -flto=auto)
endif()

# tarn_module(NAME file.c ...): one folder of src/ as an object library `module_NAME`. A unit
# test links only the modules that its own module may use, so that a forbidden call fails to link.
function(tarn_module name)
    add_library(module_${name} OBJECT ${ARGN})
    target_link_libraries(module_${name} PRIVATE tarn_flags ${TARN_MODULE_LIBS_${name}})
    target_compile_definitions(module_${name} PRIVATE TARN_BUILDING)
endfunction()

# Modules in two parts: the first is in libtarn, the other in libtarn-tools.
set(TARN_MODULE_PARTS_base base base_file)
set(TARN_MODULE_PARTS_tracker tracker tracker_log)
set(TARN_MODULE_PARTS_capture capture_live capture)

# Libraries of others, by part.
set(TARN_MODULE_LIBS_base ${CMAKE_DL_LIBS})
# libdw and SQLite are loaded at run time. The leak sanitizer sometimes stumbles over libraries that
# come late.
if(TARN_SANITIZE AND TARN_HAS_LIBDW)
    set(TARN_MODULE_LIBS_history -Wl,--push-state,--no-as-needed -ldw -Wl,--pop-state)
endif()
set(TARN_MODULE_LIBS_base_file
    $<TARGET_NAME_IF_EXISTS:ZLIB::ZLIB> $<TARGET_NAME_IF_EXISTS:PkgConfig::ZSTD>)
set(TARN_MODULE_LIBS_page $<TARGET_NAME_IF_EXISTS:ZLIB::ZLIB>)
if(TARN_SANITIZE AND TARN_SQLITE)
    set(TARN_MODULE_LIBS_export -Wl,--push-state,--no-as-needed -lsqlite3 -Wl,--pop-state)
endif()

# tarn_link_modules(TARGET module ...): objects and libraries of those modules, of both parts.
function(tarn_link_modules target)
    foreach(module IN LISTS ARGN)
        set(parts ${module})
        if(DEFINED TARN_MODULE_PARTS_${module})
            set(parts ${TARN_MODULE_PARTS_${module}})
        endif()
        foreach(part IN LISTS parts)
            target_link_libraries(${target} PRIVATE module_${part} ${TARN_MODULE_LIBS_${part}})
        endforeach()
    endforeach()
    target_link_libraries(${target} PRIVATE tarn_flags Threads::Threads m)
endfunction()

# tarn_link_in_build(NAME targets): a target NAME that makes build/ point at those of this build, if
# it is the one whose program build/tarn is.
function(tarn_link_in_build name)
    if(NOT TARN_LINK_PROGRAM)
        return()
    endif()
    add_custom_target(${name} ALL)
    foreach(target IN LISTS ARGN)
        get_target_property(type ${target} TYPE)
        set(file $<TARGET_SONAME_FILE_NAME:${target}>)
        if(type STREQUAL "EXECUTABLE")
            set(file $<TARGET_FILE_NAME:${target}>)
        endif()
        add_custom_command(TARGET ${name} POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
            $<TARGET_FILE:${target}> ${PROJECT_SOURCE_DIR}/build/${file})
        add_dependencies(${name} ${target})
    endforeach()
endfunction()
