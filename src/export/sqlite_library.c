/* SPDX-License-Identifier: MIT */
#include "export/sqlite_library.h"

#include "base/dl.h"

#include <pthread.h>

static struct {
    struct tn_sqlite functions;
    bool is_there;
} sqlite; /* written once, by sqlite_load */

static pthread_once_t sqlite_once = PTHREAD_ONCE_INIT;

static void sqlite_load(void)
{
    char why[256];
    void *library = tn_dl_open(TN_SQLITE_LIBRARY, why, sizeof why);

    sqlite.is_there = library != NULL;
#define SQLITE_FIND(name)                                                                          \
    sqlite.is_there =                                                                              \
        sqlite.is_there && tn_dl_find(library, "sqlite3_" #name, (void *)&sqlite.functions.name);
    TN_SQLITE_FUNCTIONS(SQLITE_FIND)
#undef SQLITE_FIND
}

const struct tn_sqlite *tn_sqlite_get(void)
{
    return pthread_once(&sqlite_once, sqlite_load) == 0 && sqlite.is_there ? &sqlite.functions
                                                                           : NULL;
}
