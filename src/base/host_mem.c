/* SPDX-License-Identifier: MIT */
#include "base/host_mem.h"

#include "tarn/host.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void *default_alloc(void *context, size_t size, size_t alignment)
{
    void *memory = NULL;

    (void)context;
    if (alignment <= _Alignof(max_align_t)) {
        return malloc(size);
    }
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void default_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

static const struct tarn_host_hooks default_hooks = {
    .struct_size = sizeof(struct tarn_host_hooks),
    .alloc = default_alloc,
    .release = default_release,
};

static struct tarn_host_hooks hooks = {
    .struct_size = sizeof(struct tarn_host_hooks),
    .alloc = default_alloc,
    .release = default_release,
};
static atomic_uint_fast64_t live_bytes;
static atomic_uint_fast64_t live_count;
static atomic_uint_fast64_t alloc_calls;
static atomic_uint_fast64_t fail_at; /* value of alloc_calls that fails; 0 = none */

enum tarn_status tarn_host_set_hooks(const struct tarn_host_hooks *wanted)
{
    if (atomic_load(&live_count) != 0) {
        return TARN_ERR_STATE;
    }
    if (wanted && (wanted->struct_size < sizeof *wanted || !wanted->alloc || !wanted->release)) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    hooks = wanted ? *wanted : default_hooks;
    return TARN_OK;
}

struct tarn_host_usage tarn_host_get_usage(void)
{
    return (struct tarn_host_usage){
        .live_bytes = atomic_load(&live_bytes),
        .live_count = atomic_load(&live_count),
        .alloc_calls = atomic_load(&alloc_calls),
    };
}

void tarn_host_fail_nth(uint64_t n)
{
    atomic_store(&fail_at, n == 0 ? 0 : atomic_load(&alloc_calls) + n);
}

void *tn_host_alloc(size_t size)
{
    return tn_host_alloc_aligned(size,
                                 size < TN_CACHE_LINE ? _Alignof(max_align_t) : TN_CACHE_LINE);
}

void *tn_host_alloc_aligned(size_t size, size_t alignment)
{
    if (size == 0) {
        return NULL;
    }
    const uint64_t call = atomic_fetch_add_explicit(&alloc_calls, 1, memory_order_relaxed) + 1;
    if (tn_unlikely(call == atomic_load_explicit(&fail_at, memory_order_relaxed))) {
        return NULL;
    }
    void *memory = hooks.alloc(hooks.context, size, alignment);
    if (memory) {
        atomic_fetch_add_explicit(&live_bytes, size, memory_order_relaxed);
        atomic_fetch_add_explicit(&live_count, 1, memory_order_relaxed);
    }
    return memory;
}

void *tn_host_alloc_zero(size_t size)
{
    void *memory = tn_host_alloc(size);

    if (memory) {
        memset(memory, 0, size);
    }
    return memory;
}

void tn_host_free(void *memory, size_t size)
{
    if (!memory) {
        return;
    }
    hooks.release(hooks.context, memory, size);
    atomic_fetch_sub_explicit(&live_bytes, size, memory_order_relaxed);
    atomic_fetch_sub_explicit(&live_count, 1, memory_order_relaxed);
}

void *tn_host_resize(void *memory, size_t old_size, size_t new_size)
{
    void *moved = tn_host_alloc(new_size);

    if (!moved) {
        return NULL;
    }
    if (memory) {
        memcpy(moved, memory, old_size < new_size ? old_size : new_size);
        tn_host_free(memory, old_size);
    }
    return moved;
}

char *tn_host_strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = tn_host_alloc(size);

    if (copy) {
        memcpy(copy, text, size);
    }
    return copy;
}

void tn_host_strfree(char *text)
{
    if (text) {
        tn_host_free(text, strlen(text) + 1);
    }
}

struct piece {
    _Alignas(max_align_t) size_t size; /* including this header */
};

void *tn_host_zlib_alloc(void *context, unsigned count, unsigned size)
{
    const size_t bytes = sizeof(struct piece) + (size_t)count * size;
    struct piece *piece = tn_host_alloc(bytes);

    (void)context;
    if (!piece) {
        return NULL;
    }
    piece->size = bytes;
    return piece + 1;
}

void tn_host_zlib_free(void *context, void *memory)
{
    struct piece *piece = (struct piece *)memory - 1;

    (void)context;
    tn_host_free(piece, piece->size);
}
