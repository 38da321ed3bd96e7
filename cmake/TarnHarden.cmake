# SPDX-License-Identifier: MIT
# What makes a mistake in memory harder to use by those who send files and messages: guards on
# stacks, checked copies, no table of addresses that stays writable, no stack that can run, a
# program at random addresses, marks where jumps may land. Each is tried with the compiler first.
# tests/hardening looks for all of it in what is installed.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)

check_pie_supported(LANGUAGES C)

set(TARN_HARDENING_COMPILE "")
set(TARN_HARDENING_LINK "")

# tarn_harden_compile(NAME flag): adds the flag where the compiler takes it.
function(tarn_harden_compile name flag)
    check_c_compiler_flag(${flag} TARN_TAKES_${name})
    if(TARN_TAKES_${name})
        set(TARN_HARDENING_COMPILE ${TARN_HARDENING_COMPILE} ${flag} PARENT_SCOPE)
    endif()
endfunction()

# tarn_harden_link(NAME flag): the same for the linker.
function(tarn_harden_link name flag)
    check_linker_flag(C ${flag} TARN_LINKS_${name})
    if(TARN_LINKS_${name})
        set(TARN_HARDENING_LINK ${TARN_HARDENING_LINK} ${flag} PARENT_SCOPE)
    endif()
endfunction()

tarn_harden_compile(STACK_PROTECTOR -fstack-protector-strong)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    tarn_harden_compile(CF_PROTECTION -fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    tarn_harden_compile(BRANCH_PROTECTION -mbranch-protection=standard)
endif()
tarn_harden_link(RELRO -Wl,-z,relro)
tarn_harden_link(NOW -Wl,-z,now)
tarn_harden_link(NOEXECSTACK -Wl,-z,noexecstack)

# The C library's checks need optimisation; some compilers define the macro by themselves.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    list(APPEND TARN_HARDENING_COMPILE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
