/* SPDX-License-Identifier: MIT */
/*
 * The message that describes an allocation to another process: a head, then either the handle of
 * the plain segment, or the descriptors of the pages that hold the allocation, one per page. In the
 * machine's byte order, because a message never leaves the machine. Messages come from outside: all
 * of one is checked before any of it is used.
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

/* Room for a message. If `length` is more than `capacity`, nothing was written. */
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
    uint64_t offset; /* of the allocation in what is shared */
    uint64_t size;   /* of the allocation */
    uint64_t extent; /* bytes shared: of the segment, or of all pages */
    uint64_t page_size;
};

/* A parsed message. `body` is borrowed from the message. */
struct tn_ipc_content {
    struct tn_ipc_head head;
    const unsigned char *body; /* handle, or int32_t descriptors */
    size_t body_size;
};

/* Where the allocation lies in what is shared: see tn_ipc_head. */
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

/* TARN_ERR_FORMAT with the reason if the bytes are not a message. */
enum tarn_status tn_ipc_read(const void *message, size_t length, struct tn_ipc_content *content_out,
                             struct tarn_error *error) TN_MUST_CHECK;

/* Descriptor `i`. */
int tn_ipc_descriptor(const struct tn_ipc_content *content, uint64_t i);

#endif
