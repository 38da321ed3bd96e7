/* SPDX-License-Identifier: MIT */
/* What the libdw of libdw_scripted.c says: one module with one unit. */
#ifndef TESTS_SUPPORT_LIBDW_SCRIPTED_H
#define TESTS_SUPPORT_LIBDW_SCRIPTED_H

#include <stdbool.h>
#include <stdint.h>

/* An entry of the debug information. */
struct scripted_entry {
    int tag;
    const char *linkage_name;
    const char *name;
    bool has_address;    /* the one that is looked up */
    unsigned call_line;  /* 0: not said */
    const char *call_in; /* name of a file; NULL: not said */
    struct scripted_entry *child;
    struct scripted_entry *next;
};

struct scripted_libdw {
    bool has_no_memory;   /* for a session */
    bool has_no_files;    /* of the unit */
    const char *file;     /* of the address's line; NULL: it has none */
    uint64_t begin, end;  /* of the module */
    const char *exported; /* what the module exports at the address */
    struct scripted_entry *unit;
    int sessions;
};

#endif
