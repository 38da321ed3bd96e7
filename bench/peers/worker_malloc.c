/* SPDX-License-Identifier: MIT */
/* mimalloc or jemalloc (PEER_MIMALLOC or PEER_JEMALLOC): malloc and free of host memory, which
 * nobody touches. Streams mean nothing to them. */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PEER_MIMALLOC
#include <mimalloc.h>

#define PEER_NAME      "mimalloc"
#define peer_malloc(n) mi_malloc(n)
#define peer_free(p)   mi_free(p)

static void read_version(char *text, size_t size)
{
    const int version = mi_version(); /* 209: 2.0.9 */

    (void)snprintf(text, size, "%d.%d.%d", version / 100, version / 10 % 10, version % 10);
}
#else
#include <jemalloc/jemalloc.h>

#define PEER_NAME      "jemalloc"
#define peer_malloc(n) mallocx(n, 0)
#define peer_free(p)   dallocx(p, 0)

static void read_version(char *text, size_t size)
{
    const char *version = "unknown";
    size_t length = sizeof version;

    (void)mallctl("version", &version, &length, NULL, 0);
    (void)snprintf(text, size, "%.*s", (int)strcspn(version, "-"), version); /* 5.3.0-0-g54eaed1 */
}
#endif

static uint64_t host_alloc(void *context, uint64_t size, uint64_t stream)
{
    void *memory = peer_malloc(size);

    (void)context;
    (void)stream;
    if (!memory) {
        (void)fprintf(stderr, "bench: " PEER_NAME ": no host memory\n");
        exit(1);
    }
    return (uint64_t)(uintptr_t)memory;
}

static void host_free(void *context, uint64_t ptr, uint64_t stream)
{
    (void)context;
    (void)stream;
    peer_free((void *)(uintptr_t)ptr);
}

int main(void)
{
    char version[32];

    read_version(version, sizeof version);
    const struct bench_allocator measured = {
        .name = PEER_NAME, .version = version, .alloc = host_alloc, .free = host_free};

    return worker_serve(&measured);
}
