# SPDX-License-Identifier: MIT
# The reader of empty pages (src/page/reader.h) as WebAssembly: what reads snapshots and writes
# sections, with wasi-libc, by clang. Sets `bundle_reader` to the file that has it as an array, or
# to one that has nothing. Included by src/page/CMakeLists.txt.
set(bundle_reader bundle_reader_none.c)
if(NOT TARN_READER)
    return()
endif()
find_program(TARN_WASM_CLANG NAMES clang-14 clang DOC "compiles the reader of empty pages")
find_program(TARN_WASM_LD NAMES wasm-ld-14 wasm-ld DOC "links the reader of empty pages")
find_path(TARN_WASM_LIBC wasm32-wasi/wasi/api.h DOC "wasi-libc")
if(TARN_WASM_CLANG AND TARN_WASM_LD AND TARN_WASM_LIBC)
    # clang finds its own wasm-ld and its library of built-ins, or not.
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/wasm_try.c "int main(void) { return 0; }\n")
    execute_process(COMMAND ${TARN_WASM_CLANG} --target=wasm32-wasi
        ${CMAKE_CURRENT_BINARY_DIR}/wasm_try.c -o ${CMAKE_CURRENT_BINARY_DIR}/wasm_try.wasm
        RESULT_VARIABLE wasm_failed OUTPUT_QUIET ERROR_QUIET)
else()
    set(wasm_failed TRUE)
endif()
if(wasm_failed)
    message(STATUS "no empty pages (tarn view --empty): clang for WebAssembly is missing (Debian: "
        "clang, lld, wasi-libc, libclang-rt-14-dev-wasm32)")
    return()
endif()

# All of these folders; what needs an operating system or a library of others stays out.
set(wasm_sources "")
foreach(module base base_file snapshot analysis)
    get_target_property(files module_${module} SOURCES)
    get_target_property(folder module_${module} SOURCE_DIR)
    foreach(file IN LISTS files)
        if(NOT file MATCHES "^(os_|dl\\.c|file_out\\.c|cxx_name\\.c|gzip_codec|zstd_codec)")
            list(APPEND wasm_sources ${folder}/${file})
        endif()
    endforeach()
endforeach()
foreach(file base/gzip_codec_none.c base/zstd_codec_none.c page/answers.c page/block_sizes.c
        page/bundle.c page/bundle_none.c page/column.c page/hidden_texts.c page/lifetime_ids.c
        page/names.c
        page/pool_stream_table.c page/reader.c page/record.c page/section_plain.c
        page/segment_pages.c page/size_table.c
        page/view_head.c page/view_run.c page/view_span.c page/view_write.c)
    list(APPEND wasm_sources ${PROJECT_SOURCE_DIR}/src/${file})
endforeach()

set(wasm_objects "")
foreach(source IN LISTS wasm_sources)
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/wasm/${name}.o)
    add_custom_command(OUTPUT ${object}
        COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${TARN_WASM_CLANG} --target=wasm32-wasi -std=c17 -Oz
            -D_POSIX_C_SOURCE=200809L -DTN_CHECK_LEVEL=0 -DTARN_BUILDING
            -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
            -I${PROJECT_BINARY_DIR}/include -ffunction-sections -fdata-sections
            -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
        DEPENDS ${source} DEPFILE ${object}.d VERBATIM
        COMMENT "WebAssembly: ${name}")
    list(APPEND wasm_objects ${object})
endforeach()
set(wasm ${CMAKE_CURRENT_BINARY_DIR}/reader.wasm)
add_custom_command(OUTPUT ${wasm}
    COMMAND ${TARN_WASM_CLANG} --target=wasm32-wasi -mexec-model=reactor -Wl,--gc-sections
        -Wl,--strip-all -Wl,-z,stack-size=1048576 -Wl,--max-memory=4294967296
        ${wasm_objects} -o ${wasm}
    DEPENDS ${wasm_objects} VERBATIM COMMENT "WebAssembly: the reader")
set(bundle_reader ${CMAKE_CURRENT_BINARY_DIR}/bundle_reader.c)
add_custom_command(OUTPUT ${bundle_reader}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${wasm} -DOUTPUT=${bundle_reader}
        -P ${PROJECT_SOURCE_DIR}/cmake/TarnReaderArray.cmake
    DEPENDS ${wasm} ${PROJECT_SOURCE_DIR}/cmake/TarnReaderArray.cmake VERBATIM)
