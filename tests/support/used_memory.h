/* SPDX-License-Identifier: MIT */
/* Host memory as it is after something else has used it: nothing may rely on zeros. Hooks are set
 * while no object of the library exists. Include after support/test.h. */
#ifndef TESTS_SUPPORT_USED_MEMORY_H
#define TESTS_SUPPORT_USED_MEMORY_H

#include "support/test.h"
#include "tarn/host.h"

#include <stdlib.h>
#include <string.h>

static inline void *used_memory_alloc(void *context, size_t size, size_t alignment)
{
    void *memory = NULL;

    (void)context;
    if (posix_memalign(&memory, alignment < sizeof memory ? sizeof memory : alignment, size)) {
        return NULL;
    }
    return memset(memory, 0xa5, size);
}

static inline void used_memory_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

static inline void used_memory_begin(void)
{
    const struct tarn_host_hooks hooks = {
        .struct_size = sizeof hooks, .alloc = used_memory_alloc, .release = used_memory_release};

    assert_int_equal(tarn_host_set_hooks(&hooks), TARN_OK);
}

static inline void used_memory_end(void)
{
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
}

#endif
