/* SPDX-License-Identifier: MIT */
/*
 * Text that somebody else chose (names in a snapshot, names of files, arguments of a command), made
 * safe to show. A terminal obeys control characters, and characters that turn the direction of
 * writing or have no width make a line say something else than it holds. Errors, warnings and
 * reports of the library have been through this; what a program adds to them should, too.
 */
#ifndef TARN_TEXT_H
#define TARN_TEXT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tarn_text_format {
    TARN_TEXT_PLAIN, /* for terminals and text files: \x1b, \u202e */
    TARN_TEXT_JSON   /* inside the quotes of a JSON string; bytes that are no UTF-8 are U+FFFD */
};

enum {
    TARN_TEXT_ESCAPED_MIN = 16, /* bytes that hold any one character, its NUL included */
    TARN_TEXT_DISTANCE_MAX = 63 /* longer words are compared with nothing */
};

/* Writes as much of `text` as goes into `size` bytes, at least TARN_TEXT_ESCAPED_MIN, and a NUL
 * behind it. Characters that do not show (controls of 7 and of 8 bits, marks of direction, line
 * separators, blanks other than the space) and bytes that are no UTF-8 become escapes. No character
 * and no escape is cut. Returns how many bytes of `text` were taken; for the rest call again. */
TARN_API size_t tarn_text_escape(const char *text, size_t length, enum tarn_text_format format,
                                 char *escaped, size_t size);

/* Whether a spreadsheet would take it for a formula: it begins with '=', '+', '-' or '@', also as
 * wide as a Chinese character. Tables in CSV have a ' before such a text. Of blanks and controls it
 * may begin with nothing is said: tarn_text_escape escapes them. */
TARN_API bool tarn_text_is_formula(const char *text, size_t length);

/* The Damerau-Levenshtein distance of two words (optimal string alignment): how many letters to
 * insert, delete, change or swap with the next to make one of the other. UINT32_MAX when one is
 * longer than TARN_TEXT_DISTANCE_MAX. To suggest the known word that a misspelt one means. */
TARN_API unsigned tarn_text_distance(const char *a, const char *b);

/* How many bytes of a text that ends with NUL, `most` at most, do not end within a character. */
TARN_API size_t tarn_text_fit(const char *text, size_t most);

#ifdef __cplusplus
}
#endif

#endif
