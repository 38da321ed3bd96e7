/* SPDX-License-Identifier: MIT */
/*
 * Sharing allocations between processes on the same machine, without a copy.
 *
 * The process that owns an allocation exports a message, which travels to the other process by any
 * means: a pipe, a socket, a file. That process opens the message and gets a pointer to the same
 * memory. A segment that several messages refer to is opened once and closed with its last user, as
 * PyTorch does for the tensors that a process receives.
 *
 * The owner must keep the allocation until every other process has closed it; the library does not
 * track that. The processes must also synchronize their work on the memory.
 *
 * Plain segments are shared whole (cudaIpcGetMemHandle). Of expandable segments, the pages that
 * contain the allocation are shared, through file descriptors that the other process fetches from
 * the owner. The system allows that (pidfd_getfd, Linux 5.6) to processes that may trace the owner:
 * of the same user and, with kernel.yama.ptrace_scope 1, a parent of it or one that the owner named
 * with prctl(PR_SET_PTRACER); in containers the capability SYS_PTRACE may be needed. The owner must
 * still be running when a message is opened.
 *
 * A message is trusted to name memory: its sender chooses which shared memory, among what this
 * process may open, the pointer refers to, and can change the contents at any time. Only accept
 * messages from processes that may see and change what you do with them. Everything else in a
 * message is verified: the returned pointer and size lie in one piece of memory that the device
 * itself reports as opened, anything that tarn_ipc_export did not write is rejected with nothing
 * left open, and no file or descriptor is opened that is not shared device memory.
 *
 * Thread-safe.
 */
#ifndef TARN_IPC_H
#define TARN_IPC_H

#include "allocator.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Enough bytes for the message of an allocation in a plain segment, or in up to 32 pages of an
 * expandable segment. */
enum {
    TARN_IPC_MESSAGE_SIZE = 256
};

/* Writes the message for an allocated block, `ptr` as it was returned. *length_out is the message's
 * size; when that exceeds `capacity`, the call sets it and fails with TARN_ERR_LIMIT.
 * TARN_ERR_INVALID_POINTER for any other pointer, TARN_ERR_NOT_SUPPORTED under
 * backend:cudaMallocAsync, TARN_ERR_DEVICE when the device fails. */
TARN_API enum tarn_status tarn_ipc_export(struct tarn_allocator *allocator, tarn_ptr ptr,
                                          void *message, size_t capacity, size_t *length_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* Opens a message of another process on the allocator's device, which must be the owner's device.
 * The memory does not belong to the allocator: no counter includes it and it cannot be freed. Match
 * each success with one tarn_ipc_close. *size_out (may be NULL) is the size of the owner's block.
 * TARN_ERR_FORMAT for anything else, including a message that claims more memory than is shared;
 * TARN_ERR_INVALID_ARGUMENT for a message of this process or another device; TARN_ERR_DEVICE when
 * the device or the system fails, TARN_ERR_OUT_OF_MEMORY when the address space is exhausted. */
TARN_API enum tarn_status tarn_ipc_open(struct tarn_allocator *allocator, const void *message,
                                        size_t length, tarn_ptr *ptr_out, uint64_t *size_out,
                                        struct tarn_error *error) TARN_MUST_CHECK;

/* Ends one use of what tarn_ipc_open returned; the last use of a segment closes it without waiting
 * for queued work: wait for the streams that use it first. TARN_ERR_INVALID_POINTER for a pointer
 * that is not open. */
TARN_API enum tarn_status tarn_ipc_close(struct tarn_allocator *allocator, tarn_ptr ptr,
                                         struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
