# SPDX-License-Identifier: MIT
# awk -f count_cases.awk CONSOLE LOG: counts test cases from what ctest printed (which executables
# failed or did not run, and why) and from its LastTest.log (what each executable printed).
#
# Of one executable:
#   - if its last line is `N passed, N failed, N skipped`, that line counts and nothing else;
#   - else the closing lines of cmocka count, `[  PASSED  ] N test(s).` and so on, of every group;
#     if there are none (the program died) each `[       OK ]` is a passed case. They are looked for
#     anywhere in a line: cmocka writes to both outputs, and the two meet in one pipe;
#   - if ctest says that it failed and no failed case was counted, that is one failed case (a crash,
#     a time-out, a program that is not there);
#   - if there was nothing to count, it is one case itself, passed or skipped.

function cases(line) { # the number in `[  PASSED  ] group: N test(s)`
    sub(/.*\[  (PASSED |FAILED |SKIPPED) \] /, "", line)
    match(line, /[0-9]+ test\(s\)/)
    return substr(line, RSTART, RLENGTH) + 0
}

function begin_executable(line) {
    split(line, part, "/")
    number = part[1] + 0
    name = line
    sub(/^[0-9]+\/[0-9]+ Testing: /, "", name)
    lines = ok = pass = fail = skip = broken = closed = 0
    last = reasons = ""
}

function read_output(line) {
    text[++lines] = line
    if (line ~ /[^ \t]/) {
        last = line
    }
    if (line ~ /\[       OK \] /) {
        ok++
    } else if (line ~ /\[  PASSED  \] .*[0-9]+ test\(s\)/) {
        pass += cases(line)
        closed = 1
    } else if (line ~ /\[  FAILED  \] .*[0-9]+ test\(s\)/) {
        fail += cases(line)
    } else if (line ~ /^ *[0-9]+ FAILED TEST\(S\)/) {
        broken += line # those whose set-up failed included, which the line above leaves out
    } else if (line ~ /\[  SKIPPED \] .*[0-9]+ test\(s\)/) {
        skip += cases(line)
    } else if (line ~ /^\[  SKIPPED \] / && !((number, line) in seen)) {
        seen[number, line] = 1
        reasons = reasons "    " substr(line, 14) "\n"
    } else if (line ~ /^(skip|skipped|SKIP): /) {
        reasons = reasons "    " line "\n"
    }
}

function end_executable(   i) {
    if (!closed) {
        pass = ok
    }
    if (broken > fail) {
        fail = broken
    }
    if (last ~ /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/) {
        split(last, part, " ")
        pass = part[1]
        fail = part[3]
        skip = part[5]
    }
    if (number in failed && fail == 0) {
        fail = 1
    } else if (pass + fail + skip == 0) {
        if (number in not_run) {
            skip = 1
        } else {
            pass = 1
        }
    }
    if (skip > 0) {
        printf "\n%s: %d skipped\n%s", name, skip, reasons
    }
    if (fail > 0) {
        printf "\n%s: %d failed%s\n", name, fail, number in failed ? " (" failed[number] ")" : ""
        for (i = lines > 200 ? lines - 199 : 1; i <= lines; i++) {
            print "    " text[i]
        }
    }
    passed_all += pass
    failed_all += fail
    skipped_all += skip
}

FNR == 1 {
    file++
    section = ""
}

# The two lists at the end of what ctest printed: `<tab>  7 - name (Timeout)`.
file == 1 && /^The following tests/ {
    section = /FAILED/ ? "failed" : "not run"
    next
}
file == 1 && section != "" && /^[ \t]+[0-9]+ - .*\)/ {
    why = $0
    sub(/\)[^)]*$/, "", why)
    sub(/.*\(/, "", why)
    if (section == "failed") {
        failed[$1 + 0] = why
    } else {
        not_run[$1 + 0] = why
    }
    next
}
file == 1 { next }

section == "" && /^[0-9]+\/[0-9]+ Testing: / { begin_executable($0) }
section == "" && /^Output:$/ { section = "line" }
section == "output" {
    ended = sub(/<end of output>$/, "")
    if (!ended || $0 != "") {
        read_output($0)
    }
    if (ended) {
        end_executable()
        section = ""
    }
}
section == "line" && /^-+$/ { section = "output" }

END {
    printf "\n%d passed, %d failed, %d skipped\n", passed_all, failed_all, skipped_all
}
