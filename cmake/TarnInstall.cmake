# SPDX-License-Identifier: MIT
# What is installed, in three components that CPack makes packages of: libtarn0 (the libraries),
# libtarn-dev (headers, archives, files of CMake and pkg-config, documents, examples), tarn (the
# program) and, with TARN_MPI, tarn-mpi (both: cli/CMakeLists.txt).
include(CMakePackageConfigHelpers)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tarn)
set(document_folder ${CMAKE_INSTALL_DATADIR}/doc)

# tarn_install_libraries(EXPORT target ...)
function(tarn_install_libraries export)
    install(TARGETS ${ARGN} EXPORT ${export}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtarn0
            NAMELINK_COMPONENT libtarn-dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtarn-dev)
    install(EXPORT ${export} NAMESPACE tarn:: DESTINATION ${config_folder} COMPONENT libtarn-dev)
endfunction()
tarn_install_libraries(tarn-targets tarn_shared tarn_static)
if(TARN_BUILD_TOOLS)
    tarn_install_libraries(tarn-tools-targets tarn_tools_shared tarn_tools_static)
endif()

# Before 1.0 the minor version plays the part of the major.
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tarn-config.cmake.in
    ${PROJECT_BINARY_DIR}/tarn-config.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tarn-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tarn-config.cmake
    ${PROJECT_BINARY_DIR}/tarn-config-version.cmake
    DESTINATION ${config_folder} COMPONENT libtarn-dev)

# tarn_install_pc(NAME description requires libs libs_private requires_private)
function(tarn_install_pc name description requires requires_private libs_private)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/tarn.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libtarn-dev)
endfunction()
# Relative to the file, so that the folder can be moved, unless a folder is named from the root.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
    file(RELATIVE_PATH pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
    string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${pc_prefix}")
endif()
foreach(folder LIBDIR INCLUDEDIR)
    set(pc_${folder} ${CMAKE_INSTALL_${folder}})
    if(NOT IS_ABSOLUTE "${pc_${folder}}")
        set(pc_${folder} "\${prefix}/${pc_${folder}}")
    endif()
endforeach()
tarn_install_pc(tarn "GPU memory management: a caching allocator" "" "" "-lpthread -lm -ldl")
if(TARN_BUILD_TOOLS)
    set(modules "")
    foreach(pair ZLIB:zlib ZSTD:libzstd)
        string(REPLACE ":" ";" pair ${pair})
        list(GET pair 0 option)
        list(GET pair 1 module)
        if(TARN_${option})
            string(APPEND modules " ${module}")
        endif()
    endforeach()
    tarn_install_pc(tarn-tools "GPU memory management: snapshots, reports, export" "tarn"
        "${modules}" "")
endif()

install(DIRECTORY include/tarn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libtarn-dev
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY examples DESTINATION ${document_folder}/libtarn-dev COMPONENT libtarn-dev
    FILES_MATCHING PATTERN "*.c" PATTERN "*.cpp" PATTERN "*.h" PATTERN "README*")
install(DIRECTORY adaptors DESTINATION ${document_folder}/libtarn-dev COMPONENT libtarn-dev
    FILES_MATCHING PATTERN "*.py" PATTERN "*.hpp" PATTERN "README*")
install(DIRECTORY docs DESTINATION ${document_folder}/libtarn-dev COMPONENT libtarn-dev
    FILES_MATCHING PATTERN "*.md" PATTERN "*.png")
install(FILES README.md CHANGELOG.md DESTINATION ${document_folder}/libtarn-dev
    COMPONENT libtarn-dev)
# Manual pages of the headers.
find_program(TARN_AWK NAMES awk mawk gawk DOC "makes the manual pages of section 3")
mark_as_advanced(TARN_AWK)
if(TARN_AWK)
    file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/tarn/*.h)
    set(man3 ${PROJECT_BINARY_DIR}/man3)
    add_custom_command(OUTPUT ${man3}.made
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${man3}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${man3}
        COMMAND ${TARN_AWK} -v out=${man3} -v version=${PROJECT_VERSION}
            -f ${PROJECT_SOURCE_DIR}/tools/man3.awk ${headers}
        COMMAND ${CMAKE_COMMAND} -E touch ${man3}.made
        DEPENDS ${headers} ${PROJECT_SOURCE_DIR}/tools/man3.awk VERBATIM)
    add_custom_target(man3 ALL DEPENDS ${man3}.made)
    install(DIRECTORY ${man3} DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT libtarn-dev
        FILES_MATCHING PATTERN "*.3")
endif()
set(components libtarn0 libtarn-dev)
if(TARN_BUILD_PROGRAM)
    list(APPEND components tarn)
endif()
if(TARN_MPI)
    list(APPEND components tarn-mpi)
endif()
foreach(component IN LISTS components) # by the name that Debian gives it
    install(FILES LICENSE DESTINATION ${document_folder}/${component} RENAME copyright
        COMPONENT ${component})
endforeach()

if(PROJECT_IS_TOP_LEVEL)
    include(TarnPackages)
endif()
