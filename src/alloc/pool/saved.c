/* SPDX-License-Identifier: MIT */
#include "alloc/pool/saved.h"

#include "alloc/pool/failure.h"
#include "base/assertion.h"
#include "base/errinfo.h"

#define CHUNK ((uint64_t)256 << 20) /* pinning one takes about as long as copying into it */

struct chunk {
    void *memory;
    uint64_t begin; /* offsets */
    uint64_t end;
};

void tn_saved_init(struct tn_saved *saved, struct tarn_device *device)
{
    *saved = (struct tn_saved){.device = device};
    tn_vec_init(&saved->runs, sizeof(struct tn_saved_run));
    tn_vec_init(&saved->chunks, sizeof(struct chunk));
}

void tn_saved_fini(struct tn_saved *saved)
{
    tn_saved_release(saved);
    tn_vec_fini(&saved->runs);
    tn_vec_fini(&saved->chunks);
}

uint64_t tn_saved_host_bytes(const struct tn_saved *saved)
{
    const struct chunk *chunks = saved->chunks.items;

    return saved->chunks.count > 0 ? chunks[saved->chunks.count - 1].end : 0;
}

bool tn_saved_add(struct tn_saved *saved, uint64_t address, uint64_t size)
{
    const struct tn_saved_run run = {.address = address, .size = size, .offset = saved->bytes};

    saved->bytes += size;
    return tn_vec_add(&saved->runs, &run);
}

/* The run that has the address, or NULL. */
static struct tn_saved_run *run_find(const struct tn_saved *saved, uint64_t address)
{
    struct tn_saved_run *runs = saved->runs.items;

    for (size_t i = 0; i < saved->runs.count; i++) {
        if (address >= runs[i].address && address - runs[i].address < runs[i].size) {
            return &runs[i];
        }
    }
    return NULL;
}

bool tn_saved_forget(struct tn_saved *saved, uint64_t address, uint64_t size)
{
    if (!tn_vec_reserve(&saved->runs, 1)) {
        return false;
    }
    struct tn_saved_run *run = run_find(saved, address);

    if (run) {
        const uint64_t front = address - run->address;
        const struct tn_saved_run behind = {.address = address + size,
                                            .size = run->size - front - size,
                                            .offset = run->offset + front + size};

        run->size = front;
        return tn_vec_add(&saved->runs, &behind);
    }
    return true;
}

void tn_saved_clear(struct tn_saved *saved)
{
    saved->runs.count = 0;
    saved->bytes = 0;
}

void tn_saved_release(struct tn_saved *saved)
{
    struct tarn_device *device = saved->device;
    const struct chunk *chunks = saved->chunks.items;

    while (saved->chunks.count > 0) {
        (void)device->ops->host_free(device, chunks[--saved->chunks.count].memory);
    }
}

static enum tarn_status chunk_add(struct tn_saved *saved, struct tarn_error *error)
{
    struct tarn_device *device = saved->device;
    struct chunk chunk = {.begin = tn_saved_host_bytes(saved)};
    const uint64_t left = saved->bytes - chunk.begin;
    const uint64_t size = left < CHUNK ? left : CHUNK;

    if (!tn_vec_reserve(&saved->chunks, 1)) {
        return tn_fail_memory(error);
    }
    const enum tarn_status st = device->ops->host_alloc(device, size, &chunk.memory);

    if (st) {
        return tn_device_failed(device, st, "allocating pinned memory for contents", error);
    }
    chunk.end = chunk.begin + size;
    const bool is_kept = tn_vec_add(&saved->chunks, &chunk);

    return tn_always(is_kept) ? TARN_OK : tn_fail_memory(error); /* it has room */
}

/* A copy of some runs, in the order of their offsets. */
struct copying {
    struct tn_saved *saved;
    tarn_stream stream;
    bool to_host;
};

/* The chunk with the offset, a new one behind the others if need be. */
static enum tarn_status chunk_find(const struct copying *copying, uint64_t offset,
                                   struct chunk *chunk_out, struct tarn_error *error)
{
    struct tn_saved *saved = copying->saved;
    size_t i = 0;

    while (offset >= tn_saved_host_bytes(saved)) {
        const enum tarn_status st = chunk_add(saved, error);

        if (st) {
            return st;
        }
    }
    const struct chunk *chunks = saved->chunks.items;

    while (offset >= chunks[i].end) {
        i++;
    }
    *chunk_out = chunks[i];
    return TARN_OK;
}

static enum tarn_status piece_copy(const struct copying *copying, uint64_t address, void *host,
                                   uint64_t size, struct tarn_error *error)
{
    struct tarn_device *device = copying->saved->device;
    struct tn_copy copy = {.size = size};

    if (copying->to_host) {
        copy.to = (uint64_t)(uintptr_t)host;
        copy.from_device = device;
        copy.from = address;
    } else {
        copy.to_device = device;
        copy.to = address;
        copy.from = (uint64_t)(uintptr_t)host;
    }
    const enum tarn_status st = device->ops->copy(device, &copy, copying->stream);

    return st ? tn_device_failed(device, st, "copying contents", error) : TARN_OK;
}

static enum tarn_status run_copy(const struct copying *copying, const struct tn_saved_run *run,
                                 struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    uint64_t done = 0;

    while (st == TARN_OK && done < run->size) {
        const uint64_t at = run->offset + done;
        struct chunk chunk;

        st = chunk_find(copying, at, &chunk, error);
        if (st == TARN_OK) {
            const uint64_t left = run->size - done;
            const uint64_t size = left < chunk.end - at ? left : chunk.end - at;

            st = piece_copy(copying, run->address + done,
                            (unsigned char *)chunk.memory + (at - chunk.begin), size, error);
            done += size;
        }
    }
    return st;
}

/* Waits also after a failure: what was queued uses the host memory. */
static enum tarn_status runs_copy(struct tn_saved *saved, bool to_host, struct tarn_error *error)
{
    struct tarn_device *device = saved->device;
    struct copying copying = {.saved = saved, .to_host = to_host};
    const struct tn_saved_run *runs = saved->runs.items;

    if (saved->runs.count == 0) {
        return TARN_OK;
    }
    enum tarn_status st = device->ops->stream_create(device, &copying.stream);

    if (st) {
        return tn_device_failed(device, st, "creating a stream", error);
    }
    for (size_t i = 0; st == TARN_OK && i < saved->runs.count; i++) {
        st = run_copy(&copying, &runs[i], error);
    }
    const enum tarn_status waited = device->ops->stream_wait(device, copying.stream);

    if (st == TARN_OK && waited) {
        st = tn_device_failed(device, waited, "waiting for a copy", error);
    }
    (void)device->ops->stream_destroy(device, copying.stream);
    return st;
}

enum tarn_status tn_saved_store(struct tn_saved *saved, struct tarn_error *error)
{
    return runs_copy(saved, true, error);
}

enum tarn_status tn_saved_restore(struct tn_saved *saved, struct tarn_error *error)
{
    return runs_copy(saved, false, error);
}
