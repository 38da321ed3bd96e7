/* SPDX-License-Identifier: MIT */
/*
 * Makes untrusted text (names in a snapshot, file names, command arguments) safe to print.
 * Terminals execute control characters, and bidirectional or zero-width characters make a line look
 * different from its content. Errors, warnings and reports of the library are already escaped;
 * programs should escape what they add.
 * Any thread.
 */
#ifndef TARN_TEXT_H
#define TARN_TEXT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tarn_text_format {
    TARN_TEXT_PLAIN, /* for terminals and text files: \x1b, \u202e */
    TARN_TEXT_JSON   /* inside the quotes of a JSON string; invalid UTF-8 becomes U+FFFD */
};

enum {
    TARN_TEXT_ESCAPED_MIN = 16, /* enough bytes for any one character with its NUL */
    TARN_TEXT_DISTANCE_MAX = 63 /* longer words are not compared */
};

/* Writes as much of `text` as fits into `size` bytes (at least TARN_TEXT_ESCAPED_MIN), followed by
 * a NUL. Invisible characters (7-bit and 8-bit controls, direction marks, line separators, blanks
 * other than the space) and invalid UTF-8 are escaped. No character or escape is split. Returns how
 * many bytes of `text` were consumed; call again for the remaining ones. */
TARN_API size_t tarn_text_escape(const char *text, size_t length, enum tarn_text_format format,
                                 char *escaped, size_t size);

/* Whether a spreadsheet would treat the text as a formula: it starts with '=', '+', '-' or '@', or
 * the fullwidth form of one. CSV tables put a ' before such text. Leading blanks and controls are
 * not considered: tarn_text_escape escapes them. */
TARN_API bool tarn_text_is_formula(const char *text, size_t length);

/* The Damerau-Levenshtein distance of two words (optimal string alignment): the number of
 * insertions, deletions, substitutions and transpositions that turn one into the other. UINT32_MAX
 * when one is longer than TARN_TEXT_DISTANCE_MAX. Used to suggest corrections of misspelt words. */
TARN_API unsigned tarn_text_distance(const char *a, const char *b);

/* The longest prefix of a NUL-terminated text, at most `most` bytes, that does not split a
 * character. */
TARN_API size_t tarn_text_fit(const char *text, size_t most);

#ifdef __cplusplus
}
#endif

#endif
