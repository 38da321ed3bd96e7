# SPDX-License-Identifier: MIT
# Reads names of files, one a line, and prints every breach of the rules below. Run by
# check_source.sh; each message has a sample under tests/layers that must bring it forth.

BEGIN {
    # Dependencies: what a folder of src/ may include besides itself and include/tarn. A test of the
    # folder may include the same.
    allow("base", "")
    allow("device", "base")
    allow("history", "base")
    allow("snapshot", "base")
    allow("alloc", "base device")
    allow("pinned", "base device alloc")
    allow("devices", "base device history alloc")
    allow("tracker", "base")
    allow("analysis", "base snapshot")
    allow("report", "base snapshot analysis")
    allow("render", "base snapshot analysis report")
    allow("page", "base snapshot analysis fleet")
    allow("capture", "base alloc pinned history snapshot render")
    allow("fleet", "base snapshot analysis report render")
    allow("export", "base snapshot analysis report render fleet")
    allow("replay", "base device alloc snapshot history analysis capture")
    allow("watch", "base device alloc history capture snapshot")

    # The same inside src/alloc.
    allow_inside("alloc/config", "")
    allow_inside("alloc/pool", "config")
    allow_inside("alloc/fast", "config pool")
    allow_inside("alloc/compact", "config pool")
    allow_inside("alloc/watch", "")
    allow_inside("alloc/engine", "config pool fast compact watch")
    allow_inside("alloc/share", "config pool engine")

    # Functions that nobody calls, and what to use instead.
    ban("strcpy strcat sprintf vsprintf gets", "it does not know the size of its buffer")
    ban("strtok", "it changes its input and keeps state")
    ban("atoi atol atoll atof", "it cannot report an error")
    ban("system popen", "no shell is started from here")
    ban("alloca", "the stack has no failure path")
    jumps = "setjmp longjmp sigsetjmp siglongjmp"
    heap = "malloc calloc realloc reallocarray free aligned_alloc posix_memalign memalign" \
           " strdup strndup asprintf vasprintf"
    prints = "printf vprintf puts putchar putchar_unlocked perror psignal"
    exits = "exit _exit _Exit quick_exit abort"
    environment = "getenv secure_getenv setenv putenv"

    # Words that only this project would use, and the field's (docs/glossary.md).
    private["trail"] = private["trails"] = "undo log"
    private["lane"] = private["lanes"] = "per-stream cache"
    private["lent"] = "quota"
    private["young"] = "recently freed"
    private["unfile"] = private["unfiled"] = "remove"
    private["carve"] = private["carved"] = "rebuild the layout"
    private["scene"] = private["scenes"] = "analysis"
    private["calm"] = "fast path"
    private["life"] = "lifetime"
    private["shelf"] = "freed addresses"

    split("assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal" \
          " stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string" \
          " tgmath threads time uchar wchar wctype error term elf link sched search regex poll",
          names, " ")
    for (i in names) {
        system_header[names[i] ".h"] = 1
    }
}

function allow(module, others,   list, i) {
    modules[module] = 1
    allowed[module, module] = 1
    for (i = split(others, list, " "); i > 0; i--) {
        allowed[module, list[i]] = 1
    }
}

function allow_inside(folder, others,   list, i, parent) {
    parent = folder
    sub(/\/.*/, "", parent)
    inside[folder, folder] = 1
    for (i = split(others, list, " "); i > 0; i--) {
        inside[folder, parent "/" list[i]] = 1
    }
}

# "alloc/pool" of a file in it, "" of one in a folder without folders.
function folder_of(file,   part) {
    sub(/^src\//, "", file)
    return split(file, part, "/") == 3 ? part[1] "/" part[2] : ""
}

function ban(functions, why,   list, i) {
    for (i = split(functions, list, " "); i > 0; i--) {
        banned[list[i]] = why
    }
}

function breach(line, what) {
    printf "%s:%d: %s\n", path, line, what
    count++
}

function has_word(list, word) {
    return index(" " list " ", " " word " ") > 0
}

# Files that print why the process ends, and end it.
function has_last_words(file) {
    return file == "src/base/assertion.c"
}

# The module whose dependencies a file may include: "base" ... "replay"; "public" for include/tarn,
# "outside" for what may use include/tarn only, "free" for the rest (tests of several modules,
# fuzzing, benchmarks).
function side_of(file,   part) {
    split(file, part, "/")
    if (part[1] == "src") {
        return part[2]
    }
    if (part[1] == "tests" && part[2] == "unit" && part[3] in modules) {
        return part[3]
    }
    if (file ~ /^include\//) {
        return "public"
    }
    return file ~ /^(cli|plug|examples)\// ? "outside" : "free"
}

# x.c and x.h are one unit, "base/x"; what a unit includes is kept for check_cycles.
function unit_of(file) {
    sub(/^src\//, "", file)
    sub(/\.[a-z]*$/, "", file)
    return file
}

function note_include(line, target,   from, to) {
    from = unit_of(path)
    to = unit_of(target)
    if (path ~ /^src\// && from != to && !((from, to) in included)) {
        if (!(from in includes)) {
            unit[++units] = from
        }
        included[from, to] = path ":" line
        includes[from] = includes[from] " " to
    }
}

# Reports the include that closes a cycle of units. Depth-first; state: 1 = on the path, 2 = done.
function check_cycles(from, trail,   list, i, n) {
    state[from] = 1
    n = split(includes[from], list, " ")
    for (i = 1; i <= n; i++) {
        if (!(list[i] in state)) {
            check_cycles(list[i], trail " " list[i])
        } else if (state[list[i]] == 1) {
            printf "%s: includes %s.h, which closes the cycle%s\n", included[from, list[i]],
                list[i], substr(trail, index(trail " ", " " list[i] " "))
            count++
        }
    }
    state[from] = 2
}

function check_include(line, target,   part, module, from, to) {
    # Proofs are of static functions; what a test must set from inside is in a file that says so.
    if (target ~ /\.c$/ && path !~ /^tests\/(proofs\/|unit\/.*_inside\.c$)/) {
        breach(line, "includes " target ": a .c file is compiled, never included")
        return
    }
    if (target ~ /(^|\/)\.\.?\//) {
        breach(line, "includes " target ": write the path from the root of includes")
        return
    }
    note_include(line, target)
    from = folder_of(path)
    to = folder_of(target)
    if (path ~ /^src\// && from != "" && to != "" && !((from, to) in inside)) {
        breach(line, "may not include " target ": " from " does not depend on " to)
    }
    module = split(target, part, "/") > 1 ? part[1] : ""
    if (module == "cli" && path !~ /^(cli|tests\/cli|tests\/unit\/cli|fuzz)\//) {
        breach(line, "may not include " target ": only cli/ sees cli/")
    }
    if (!(module in modules) || side == "free" || allowed[side, module] || allowed[side, target]) {
        return
    }
    if (side == "outside" || side == "public") {
        breach(line, "may not include " target ": only include/tarn may be used here")
    } else {
        breach(line, "may not include " target ": " side " does not depend on " module)
    }
}

function check_call(line, name) {
    if (name in banned) {
        breach(line, "calls " name ": " banned[name])
    }
    if (has_word(jumps, name) && path !~ /^tests\//) {
        breach(line, "calls " name ": no jumps outside tests")
    }
    # What the C++ runtime gives is from its malloc.
    if (path ~ /^src\// && path != "src/base/host_mem.c" && has_word(heap, name) &&
        !(path == "src/base/cxx_name.c" && name == "free")) {
        breach(line, "calls " name ": host memory comes from base/host_mem.h")
    }
    if (path !~ /^(src|plug)\//) {
        return
    }
    if (has_word(prints, name)) {
        breach(line, "calls " name ": the library never prints")
    }
    if (has_word(exits, name) && !has_last_words(path)) {
        breach(line, "calls " name ": the library never ends the program")
    }
    if (has_word(environment, name) && path !~ /^src\/alloc\/config\/[a-z_]*\.c$/ &&
        path != "src/capture/oom_dump.c" && path != "plug/preload/process.c") {
        breach(line, "calls " name ": only tarn_config_from_env and tarn_oom_dump_create do")
    }
}

# `line` without comments and without the contents of strings; in_comment is carried on.
function code_of(line,   out, at, rest, quote, skip) {
    out = ""
    for (;;) {
        if (in_comment) {
            at = index(line, "*/")
            if (!at) {
                return out
            }
            line = substr(line, at + 2)
            in_comment = 0
        }
        if (!match(line, /\/\*|\/\/|["']/)) {
            return out line
        }
        out = out substr(line, 1, RSTART - 1)
        quote = substr(line, RSTART, 1)
        rest = substr(line, RSTART + (quote == "/" ? 2 : 1))
        if (substr(line, RSTART, 2) == "//") {
            return out
        }
        if (quote == "/") {
            in_comment = 1
            out = out " "
        } else {
            skip = quote == "\"" ? "^([^\"\\\\]|\\\\.)*\"" : "^([^'\\\\]|\\\\.)*'"
            if (!match(rest, skip)) {
                return out
            }
            out = out quote quote
            rest = substr(rest, RLENGTH + 1)
        }
        line = rest
    }
}

function check_words(line, text,   list, i) {
    for (i = split(tolower(text), list, /[^a-z]+/); i > 0; i--) {
        if (list[i] in private) {
            breach(line, "says " list[i] ": the field says " private[list[i]])
        }
    }
}

function check_c_line(line, text,   code, target, name, before) {
    if (!in_comment && text ~ /^[ \t]*#[ \t]*include[ \t]*["<]/) {
        target = text
        sub(/^[^"<]*["<]/, "", target)
        sub(/[">].*/, "", target)
        check_include(line, target)
        return
    }
    if (text ~ /\t/) {
        breach(line, "has a tab: four spaces")
    }
    code = code_of(text)
    if (path ~ /^(src|plug)\// && !has_last_words(path) &&
        match(code, /(^|[^A-Za-z0-9_])(stdout|stderr)([^A-Za-z0-9_]|$)/)) {
        breach(line, "uses stdout or stderr: the library never prints")
    }
    while (match(code, /[A-Za-z_][A-Za-z0-9_]*[ ]*\(/)) {
        before = RSTART > 1 ? substr(code, RSTART - 1, 1) : ""
        name = substr(code, RSTART, RLENGTH - 1)
        sub(/ +$/, "", name)
        if (before != "." && before != ">" && before !~ /[0-9]/) { # not a member: ops->free(...)
            check_call(line, name)
        }
        code = substr(code, RSTART + RLENGTH)
    }
}

function check_file_name(   part, n, base) {
    n = split(path, part, "/")
    base = part[n]
    if (path !~ /^src\/.*\.(c|h|def)$/) {
        return
    }
    if (!(part[2] in modules) || n != (part[2] == "alloc" ? 4 : 3)) {
        breach(1, "is in no folder that is a module")
    }
    if (base in first_of) {
        breach(1, "has the name of " first_of[base])
    }
    first_of[base] = path
    if (base in system_header) {
        breach(1, "has the name of a system header")
    }
}

function columns(text) { # characters, not bytes
    gsub(/[\200-\277]/, "", text)
    return length(text)
}

{
    path = $0
    if (path ~ /^(tests\/layers|tests\/data|fuzz\/corpus|bench\/results)\//) {
        next # samples of what must be rejected, and data
    }
    is_c = path ~ /\.(c|h|def)$/
    is_code = is_c || path ~ /\.(sh|awk|cmake|py|js|mjs|css)$/ ||
              path ~ /(^|\/)(CMakeLists\.txt|Makefile|\.ci\/run)$/
    is_text = is_code || path ~ /\.(md|txt|json|html|map|yml|toml)$/
    if (!is_text) {
        next
    }
    check_file_name()
    side = side_of(path)
    in_comment = 0
    has_licence = 0
    lines = 0
    while ((getline text < path) > 0) {
        lines++
        if (text ~ /[ \t\r]$/) {
            breach(lines, "has blanks at the end of the line")
        }
        if (is_code && length(text) > 100 && columns(text) > 100) {
            breach(lines, "is longer than 100 columns")
        }
        if (lines <= 2 && text ~ /SPDX-License-Identifier: MIT/) {
            has_licence = 1
        }
        if (is_c && path ~ /^(src|include|cli)\//) {
            check_words(lines, text)
        }
        if (is_c) {
            check_c_line(lines, text)
        }
    }
    close(path)
    if (is_code && !has_licence) {
        breach(1, "has no SPDX-License-Identifier line among its first two")
    }
}

END {
    for (i = 1; i <= units; i++) {
        if (!(unit[i] in state)) {
            check_cycles(unit[i], " " unit[i])
        }
    }
    exit count > 0
}
