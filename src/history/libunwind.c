/* SPDX-License-Identifier: MIT */
#include "history/libunwind.h"

#include "base/dl.h"
#include "base/os_code.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(tn_libunwind_trace *) trace; /* NULL for good after a module was unloaded */

static void load(void)
{
    tn_libunwind_trace *found = NULL;
    char why[256];
#ifdef __SANITIZE_THREAD__
    /* libunwind frees a thread's cache in the last round of pthread_key_create's destructors and
     * locks a mutex for it, when the sanitizer may have finished with the thread already: its
     * pthread_mutex_lock then follows a null pointer. */
    void *library = NULL;
    (void)why;
#else
    void *library = tn_dl_open("libunwind.so.8", why, sizeof why);
#endif

    if (library && tn_dl_find(library, "unw_backtrace", (void *)&found)) {
        atomic_store_explicit(&trace, found, memory_order_release);
    }
}

void tn_libunwind_load(void)
{
    (void)pthread_once(&once, load);
}

tn_libunwind_trace *tn_libunwind_get(void)
{
    tn_libunwind_trace *found = atomic_load_explicit(&trace, memory_order_acquire);

    if (found && tn_os_code_unloads() > 0) {
        atomic_store_explicit(&trace, NULL, memory_order_relaxed);
        found = NULL;
    }
    return found;
}
