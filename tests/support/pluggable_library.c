/* SPDX-License-Identifier: MIT */
/* A shared object that allocates host memory, and tells the test what it was asked. */
#include "support/pluggable_library.h"

#include <stdlib.h>

static struct pluggable_log log_of;

struct pluggable_log *library_log(void)
{
    return &log_of;
}

void *library_alloc(size_t size, int device, void *stream)
{
    log_of.allocs++;
    log_of.size = size;
    log_of.device = device;
    log_of.stream = stream;
    if (log_of.full) {
        return NULL;
    }
    void *memory = log_of.repeat ? log_of.last : malloc(size);

    log_of.last = memory;
    return memory;
}

void library_free(void *memory, size_t size, int device, void *stream)
{
    log_of.frees++;
    log_of.size = size;
    log_of.device = device;
    log_of.stream = stream;
    free(memory);
}

void library_reset(void)
{
    log_of.resets++;
}

void library_fraction(double fraction, int device)
{
    log_of.fraction = fraction;
    log_of.device = device;
}

void *library_base(void *memory, size_t *size)
{
    *size += 100;
    return (char *)memory - 100;
}

void library_record(void *memory, void *stream)
{
    log_of.recorded = memory;
    log_of.stream = stream;
}
