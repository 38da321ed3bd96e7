/* SPDX-License-Identifier: MIT */
#include "alloc/engine/ipc_message.h"

#include "base/errinfo.h"
#include "base/os_process.h"

#include <string.h>

/* More than any device has; so that sums below cannot overflow. */
#define EXTENT_MAX ((uint64_t)1 << 57)

static const char magic[8] = {'t', 'a', 'r', 'n', 'i', 'p', 'c', '1'};

static void message_write(struct tn_ipc_buffer *buffer, enum tn_ipc_kind kind,
                          const struct tn_ipc_part *part, uint64_t page_size, const void *body,
                          size_t body_size)
{
    struct tn_ipc_head head = {
        .kind = kind,
        .ordinal = part->ordinal,
        .process = tn_os_process_id(),
        .offset = part->offset,
        .size = part->size,
        .extent = part->extent,
        .page_size = page_size,
    };

    buffer->length = sizeof head + body_size;
    if (buffer->length <= buffer->capacity) {
        memcpy(head.magic, magic, sizeof head.magic);
        memcpy(buffer->bytes, &head, sizeof head);
        memcpy((char *)buffer->bytes + sizeof head, body, body_size);
    }
}

void tn_ipc_write_plain(struct tn_ipc_buffer *buffer, const struct tn_ipc_part *part,
                        const struct tn_ipc_handle *handle)
{
    message_write(buffer, TN_IPC_PLAIN, part, 0, handle, sizeof *handle);
}

void tn_ipc_write_pages(struct tn_ipc_buffer *buffer, const struct tn_ipc_part *part,
                        uint64_t page_size, const int *descriptors)
{
    message_write(buffer, TN_IPC_PAGES, part, page_size, descriptors,
                  (size_t)(part->extent / page_size) * sizeof *descriptors);
}

/* Why head or body do not suit the kind; NULL if they do. */
static const char *body_objection(const struct tn_ipc_content *content)
{
    const struct tn_ipc_head *head = &content->head;

    if (head->kind == TN_IPC_PLAIN) {
        return content->body_size == sizeof(struct tn_ipc_handle) ? NULL : "it has a wrong length";
    }
    if (head->kind != TN_IPC_PAGES) {
        return "it is of an unknown kind";
    }
    if (head->page_size == 0 || head->extent % head->page_size != 0) {
        return "its pages have an impossible size";
    }
    return content->body_size / sizeof(int32_t) == head->extent / head->page_size &&
                   content->body_size % sizeof(int32_t) == 0
               ? NULL
               : "it has a wrong length";
}

static const char *objection(const struct tn_ipc_content *content)
{
    const struct tn_ipc_head *head = &content->head;

    if (memcmp(head->magic, magic, sizeof head->magic) != 0) {
        return "it does not begin like one";
    }
    if (head->extent == 0 || head->extent > EXTENT_MAX || head->offset >= head->extent ||
        head->size == 0 || head->size > head->extent - head->offset) {
        return "the allocation lies outside of what is shared";
    }
    return body_objection(content);
}

enum tarn_status tn_ipc_read(const void *message, size_t length, struct tn_ipc_content *content_out,
                             struct tarn_error *error)
{
    struct tn_ipc_content content = {0};
    const char *why = "it is too short";

    if (length > sizeof content.head) {
        memcpy(&content.head, message, sizeof content.head);
        content.body = (const unsigned char *)message + sizeof content.head;
        content.body_size = length - sizeof content.head;
        why = objection(&content);
    }
    if (why) {
        return tn_fail(error, TARN_ERR_FORMAT, "not a message of tarn_ipc_export: %s", why);
    }
    *content_out = content;
    return TARN_OK;
}

int tn_ipc_descriptor(const struct tn_ipc_content *content, uint64_t i)
{
    int32_t descriptor;

    memcpy(&descriptor, content->body + i * sizeof descriptor, sizeof descriptor);
    return descriptor;
}
