/* SPDX-License-Identifier: MIT */
#include "export/sqlite_library.h"

#include "base/dl.h"

#include <pthread.h>

static struct tn_sqlite sqlite_functions;
static const struct tn_sqlite *sqlite; /* both written once, by sqlite_load */
static pthread_once_t sqlite_once = PTHREAD_ONCE_INIT;

const struct tn_sqlite *tn_sqlite_load(const char *library, struct tn_sqlite *functions_out)
{
#define SQLITE_WANTED(name) {"sqlite3_" #name, (void *)&functions_out->name},
    const struct {
        const char *name;
        void *function_out;
    } wanted[] = {TN_SQLITE_FUNCTIONS(SQLITE_WANTED)};
#undef SQLITE_WANTED
    char why[256];
    void *opened = tn_dl_open(library, why, sizeof why);
    bool good = opened != NULL;

    for (size_t i = 0; good && i < sizeof wanted / sizeof *wanted; i++) {
        good = tn_dl_find(opened, wanted[i].name, wanted[i].function_out);
    }
    return good ? functions_out : NULL;
}

static void sqlite_load(void)
{
    sqlite = tn_sqlite_load(TN_SQLITE_LIBRARY, &sqlite_functions);
}

const struct tn_sqlite *tn_sqlite_get(void)
{
    (void)pthread_once(&sqlite_once, sqlite_load);
    return sqlite;
}
