/* SPDX-License-Identifier: MIT */
/*
 * The command lines that the fuzz target of the whole program chooses from. In arguments @A and @B
 * are inputs, @O is a file to write; blanks separate.
 */
#ifndef FUZZ_PROGRAM_FORMS_H
#define FUZZ_PROGRAM_FORMS_H

/* What the standard output must look like, whatever the input. */
enum output_kind {
    OUTPUT_TEXT, /* nothing that a terminal obeys; its options may make it --json or --csv */
    OUTPUT_JSON,
    OUTPUT_BYTES /* anything */
};

enum {
    FORM_READS_SNAPSHOTS = 1,
    FORM_READS_TRACK = 2,
    FORM_READS_DECISIONS = 4,
    FORM_READS_PROFILE = 8
};

struct command_form {
    unsigned reads; /* FORM_READS_... */
    enum output_kind output;
    const char *arguments;
    const char *const *options; /* of which some are taken; ends with NULL */
};

/* All; ends with a row without arguments. */
extern const struct command_form command_forms[];

#endif
