# SPDX-License-Identifier: MIT
# Manual pages of section 3 from public headers: awk -v out=FOLDER -v version=X -f tools/man3.awk
# include/tarn/*.h. A page per header, tarn_NAME.3, with the header's first comment as its
# description and each comment with what it documents; and a link to it for each function.
# The headers are the source: no text is written here.

function roff(text) { # a line that is text and nothing else
    gsub(/\\/, "\\e", text)
    sub(/^[.']/, "\\\\\\&&", text)
    return text
}

function paragraph(comment,    lines, n, i, blank) {
    n = split(comment, lines, "\n")
    blank = 1
    for (i = 1; i <= n; i++) {
        if (lines[i] == "") {
            blank = 1
        } else {
            if (blank) {
                print ".PP" >page
            }
            # What is indented stays as it is.
            if (lines[i] ~ /^ /) {
                print ".nf" >page
                print roff(lines[i]) >page
                print ".fi" >page
            } else {
                print roff(lines[i]) >page
            }
            blank = 0
        }
    }
}

function verbatim(text) {
    gsub(/TARN_API /, "", text)
    gsub(/TARN_MUST_CHECK static/, "static", text)
    gsub(/ TARN_MUST_CHECK;/, ";", text)
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/\n[.]/, "\n\\\\\\&.", text)
    print ".PP\n.RS 4\n.nf" >page
    print text >page
    print ".fi\n.RE" >page
}

# The functions that the code declares or defines get links.
function link_functions(text,    name) {
    while (match(text, /(^|[ *\n])tarn_[a-z0-9_]+\(/)) {
        name = substr(text, RSTART, RLENGTH - 1)
        sub(/^[ *\n]/, "", name)
        text = substr(text, RSTART + RLENGTH)
        if (name != title && !(name in linked)) {
            linked[name] = title
            print ".so man3/" title ".3" >(out "/" name ".3")
            close(out "/" name ".3")
        }
    }
}

function flush_group() {
    if (comment != "" && !described) {
        described = 1
        begin_page(comment)
        comment = ""
    }
    if (code == "" && comment == "") {
        return
    }
    if (comment != "") {
        paragraph(comment)
    }
    if (code != "") {
        verbatim(code)
        if (code ~ /TARN_API|static inline/) {
            link_functions(code)
        }
    }
    comment = ""
    code = ""
}

function begin_page(text,    sentence) {
    sentence = text
    gsub(/\n/, " ", sentence)
    sub(/\.( .*)?$/, "", sentence)
    if (match(sentence, /\. /)) {
        sentence = substr(sentence, 1, RSTART - 1)
    }
    print ".TH " toupper(title) " 3 \"\" \"tarn " version "\" \"libtarn\"" >page
    print ".SH NAME" >page
    print title " \\- " roff(sentence) >page
    print ".SH SYNOPSIS" >page
    print ".nf\n#include <tarn/" base ".h>\n.fi" >page
    print ".SH DESCRIPTION" >page
    paragraph(text)
    print ".SH INTERFACE" >page
}

function finish() {
    if (page != "") {
        flush_group()
        print ".SH SEE ALSO" >page
        print "The guide for C programs, docs/guide/c.md." >page
        close(page)
    }
}

FNR == 1 {
    finish()
    base = FILENAME
    sub(/.*\//, "", base)
    sub(/\.h$/, "", base)
    title = "tarn_" base
    page = out "/" title ".3"
    described = inside = depth = skips = 0
    comment = code = ""
    next # the SPDX line
}

# What only compilers need.
/^#ifdef __cplusplus/ {
    skips = 1
    next
}
skips {
    skips = !/^#endif/
    next
}
/^#(ifndef|define) TARN_[A-Z0-9_]+_H$/ || /^#include/ || (/^#endif$/ && depth == 0 && !in_if) {
    next
}
/^#if/ {
    in_if = 1
}
/^#endif/ {
    in_if = 0
}

inside {
    line = $0
    inside = line !~ /\*\/$/
    sub(/ *\*\/$/, "", line)
    sub(/^ \*? ?/, "", line)
    comment = comment "\n" line
    next
}
/^\/\*/ && depth == 0 {
    flush_group()
    line = $0
    inside = line !~ /\*\/$/
    sub(/ *\*\/$/, "", line)
    sub(/^\/\* ?/, "", line)
    comment = line
    next
}
/^$/ && depth == 0 {
    if (code != "" || !described) {
        flush_group()
    }
    next
}
{
    code = code (code == "" ? "" : "\n") $0
    line = $0
    depth += gsub(/[{(]/, "", line) - gsub(/[})]/, "", line)
}
END {
    finish()
}
