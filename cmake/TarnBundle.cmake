# SPDX-License-Identifier: MIT
# cmake -DFOLDER=viewer -DPAGE=page.html -DSTYLES=a.css,b.css -DMODULES=a.js,b.js
#     -DNAME=tn_bundle_viewer -DESBUILD=/usr/bin/esbuild -DOUTPUT=bundle.c -P TarnBundle.cmake
#
# Makes a page of the viewer, a struct tn_bundle (src/page/bundle.h) of that name, from its HTML,
# its styles and its modules; the last one starts it.
# esbuild joins and minifies them. Without it they are joined in the order given: each is written so
# that it needs only those before it, and their names are distinct.
# The page's security policy names the hashes of its one style and its one script.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "," ";" MODULES "${MODULES}")
string(REPLACE "," ";" STYLES "${STYLES}")

function(minify variable file)
    execute_process(
        COMMAND ${ESBUILD} ${FOLDER}/${file} --bundle --minify --format=esm --charset=ascii
            --log-level=error
        OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    set(${variable} "${text}" PARENT_SCOPE)
endfunction()

if(ESBUILD)
    list(GET MODULES -1 start)
    minify(script ${start})
    set(style "")
    foreach(file IN LISTS STYLES)
        minify(text ${file})
        string(APPEND style "${text}")
    endforeach()
else()
    set(script "")
    foreach(module IN LISTS MODULES)
        file(READ "${FOLDER}/${module}" text)
        string(REGEX REPLACE "(^|\n)import [^;]*;\n" "\\1" text "${text}")
        string(REGEX REPLACE "(^|\n)export " "\\1" text "${text}")
        string(APPEND script "${text}")
    endforeach()
    set(style "")
    foreach(file IN LISTS STYLES)
        file(READ "${FOLDER}/${file}" text)
        string(APPEND style "${text}")
    endforeach()
endif()

# The hash of a text as a policy writes it: SHA-256 in base64.
set(LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
function(policy_hash variable text)
    string(SHA256 hex "${text}")
    string(APPEND hex "00") # 33 bytes: 44 letters, of which the last is padding
    set(base64 "")
    foreach(at RANGE 0 60 6)
        string(SUBSTRING ${hex} ${at} 6 three)
        foreach(shift 18 12 6 0)
            math(EXPR letter "(0x${three} >> ${shift}) & 63")
            string(SUBSTRING ${LETTERS} ${letter} 1 letter)
            string(APPEND base64 ${letter})
        endforeach()
    endforeach()
    string(SUBSTRING ${base64} 0 43 base64)
    set(${variable} "sha256-${base64}=" PARENT_SCOPE)
endfunction()
policy_hash(style_hash "${style}")
policy_hash(script_hash "${script}")

file(READ "${FOLDER}/${PAGE}" page)
string(REGEX REPLACE "<!--([^-]|-[^-])*-->\n?" "" page "${page}")
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
if(page MATCHES "[^\n -~]")
    message(FATAL_ERROR "the viewer's files must be ASCII: write \\u escapes")
endif()

function(put_array name text)
    file(WRITE "${OUTPUT}.part" "${text}")
    file(READ "${OUTPUT}.part" hex HEX)
    file(REMOVE "${OUTPUT}.part")
    string(LENGTH "${hex}" size)
    math(EXPR size "${size} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    file(APPEND "${OUTPUT}.new" "static const char ${name}[${size}] = {${bytes}};\n")
endfunction()

file(WRITE "${OUTPUT}.new"
    "/* Made by cmake/TarnBundle.cmake. */\n#include \"page/bundle.h\"\n\n")
# The pieces between the places where the program puts something in.
foreach(piece start policy middle)
    set(mark_start "@POLICY@")
    set(mark_policy "@TITLE@")
    set(mark_middle "@DATA@")
    string(FIND "${page}" "${mark_${piece}}" at)
    string(SUBSTRING "${page}" 0 ${at} part)
    put_array(${piece} "${part}")
    string(LENGTH "${mark_${piece}}" length)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${page}" ${at} -1 page)
endforeach()
put_array(end "${page}")
file(APPEND "${OUTPUT}.new" "const struct tn_bundle ${NAME} = {\n"
    "    .start = {start, sizeof start}, .policy = {policy, sizeof policy},\n"
    "    .middle = {middle, sizeof middle}, .end = {end, sizeof end}};\n")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
