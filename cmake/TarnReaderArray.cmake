# SPDX-License-Identifier: MIT
# cmake -DINPUT=reader.wasm -DOUTPUT=bundle_reader.c -P TarnReaderArray.cmake: a file as an array.
file(READ "${INPUT}" hex HEX)
string(LENGTH "${hex}" size)
math(EXPR size "${size} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
file(WRITE "${OUTPUT}" "/* Made by cmake/TarnReaderArray.cmake. */\n#include \"page/bundle.h\"\n\n"
    "const char tn_bundle_reader[] = {${bytes}};\nconst size_t tn_bundle_reader_size = ${size};\n")
