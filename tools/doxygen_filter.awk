# SPDX-License-Identifier: MIT
# A public header as Doxygen wants it: plain comments become documentation. The first one (after the
# SPDX line) documents the file, a comment above declarations that follow without an empty line
# documents each of them, one behind a member documents that member.

function escaped(text,    i, c, done) { # of a comment: nothing in it is a command of Doxygen's
    done = ""
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        done = done (index("\\@%#<>", c) ? "\\" : "") c
    }
    return done
}

# The text with every comment that begins or goes on in it made documentation; `mark` is what a new
# one begins with.
function documented(text, mark,    at, done) {
    done = ""
    while (text != "") {
        if (inside) {
            at = index(text, "*/")
            done = done escaped(at ? substr(text, 1, at - 1) : text) (at ? "*/" : "")
            text = at ? substr(text, at + 2) : ""
            inside = !at
        } else {
            at = index(text, "/*")
            if (at && prefix_is_code(substr(text, 1, at - 1))) {
                mark = "/**<"
            }
            done = done (at ? substr(text, 1, at - 1) mark : text)
            text = at ? substr(text, at + 2) : ""
            inside = at > 0
        }
    }
    return done
}

function prefix_is_code(text) {
    return text ~ /[^ ]/
}

/SPDX-License-Identifier/ {
    print ""
    next
}
/^$/ && !inside {
    comment = ""
    print
    next
}
/^\/\*/ && !inside {
    of_file = !seen++
    comment = ""
    gathers = 1
}
/^TARN_API/ && !fresh && comment != "" {
    printf "%s", comment
}
{
    line = documented($0, "/**" (of_file ? " @file\n *" : ""))
    of_file = 0
    print line
    if (gathers) {
        comment = comment line "\n"
        gathers = inside
        fresh = !inside
    } else if (/;/) {
        fresh = 0
    }
}
