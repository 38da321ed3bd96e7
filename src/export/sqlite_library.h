/* SPDX-License-Identifier: MIT */
/*
 * SQLite, loaded when the first database is made: linked to it, every program that reads snapshots
 * would wait for the 3,000 relocations that it brings along.
 */
#ifndef TN_EXPORT_SQLITE_LIBRARY_H
#define TN_EXPORT_SQLITE_LIBRARY_H

#include "base/attr.h"

#include <sqlite3.h>

/* By the name that all versions have whose functions are these. */
#define TN_SQLITE_LIBRARY "libsqlite3.so.0"

#define TN_SQLITE_FUNCTIONS(F)                                                                     \
    F(bind_double)                                                                                 \
    F(bind_int64)                                                                                  \
    F(bind_null)                                                                                   \
    F(bind_text)                                                                                   \
    F(bind_text64)                                                                                 \
    F(close)                                                                                       \
    F(errstr)                                                                                      \
    F(exec)                                                                                        \
    F(file_control)                                                                                \
    F(finalize)                                                                                    \
    F(open_v2)                                                                                     \
    F(prepare_v2)                                                                                  \
    F(reset)                                                                                       \
    F(serialize)                                                                                   \
    F(step)

struct tn_sqlite {
#define TN_SQLITE_MEMBER(name) __typeof__(sqlite3_##name) *name;
    TN_SQLITE_FUNCTIONS(TN_SQLITE_MEMBER)
#undef TN_SQLITE_MEMBER
};

/* Finds them in the library of that name, which stays open, and returns them; NULL if it cannot be
 * opened or lacks one. */
const struct tn_sqlite *tn_sqlite_load(const char *library,
                                       struct tn_sqlite *functions_out) TN_MUST_CHECK;

/* Its functions, for as long as the process lives; NULL where it is not installed, or lacks one of
 * them. Thread-safe. */
const struct tn_sqlite *tn_sqlite_get(void);

#endif
