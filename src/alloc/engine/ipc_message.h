/* SPDX-License-Identifier: MIT */
/*
 * The message that describes an allocation to another process: a head, then either the handle of
 * the plain segment, or the numbers of the descriptors, one a page, that hold the allocation. In
 * the machine's byte order: a message never leaves it. What is read comes from outside and is
 * checked whole before any of it is used.
 */
#ifndef TN_ALLOC_ENGINE_IPC_MESSAGE_H
#define TN_ALLOC_ENGINE_IPC_MESSAGE_H

#include "base/attr.h"
#include "device/device_ops.h"

#include <stddef.h>

enum tn_ipc_kind {
    TN_IPC_PLAIN = 1,
    TN_IPC_PAGES = 2
};

/* Room for a message; `length` can be more than `capacity`, then nothing was written. */
struct tn_ipc_buffer {
    void *bytes;
    size_t capacity;
    size_t length;
};

struct tn_ipc_head {
    char magic[8];
    uint32_t kind;
    int32_t ordinal; /* of the owner's device */
    int64_t process; /* the owner */
    uint64_t offset; /* of the allocation from what is shared */
    uint64_t size;   /* of the allocation */
    uint64_t extent; /* bytes shared: of the segment, or of all pages */
    uint64_t page_size;
};

/* A message taken apart. `body` is borrowed from the message. */
struct tn_ipc_content {
    struct tn_ipc_head head;
    const unsigned char *body; /* handle, or int32_t descriptors */
    size_t body_size;
};

/* What is shared of a segment, from one place on. */
struct tn_ipc_part {
    int ordinal;
    uint64_t offset;
    uint64_t size;
    uint64_t extent;
};

void tn_ipc_write_plain(struct tn_ipc_buffer *buffer, const struct tn_ipc_part *part,
                        const struct tn_ipc_handle *handle);
void tn_ipc_write_pages(struct tn_ipc_buffer *buffer, const struct tn_ipc_part *part,
                        uint64_t page_size, const int *descriptors);

/* TARN_ERR_FORMAT with the reason when the bytes are no message. */
enum tarn_status tn_ipc_read(const void *message, size_t length, struct tn_ipc_content *content_out,
                             struct tarn_error *error) TN_MUST_CHECK;

/* Number `i` of the descriptors. */
int tn_ipc_descriptor(const struct tn_ipc_content *content, uint64_t i);

#endif
