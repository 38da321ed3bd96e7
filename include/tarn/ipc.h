/* SPDX-License-Identifier: MIT */
/*
 * Sharing allocations between processes on the same machine, without a copy.
 *
 * The process that owns an allocation writes a message about it, which goes to the other process by
 * any way: a pipe, a socket, a file. That process opens the message and has a pointer to the same
 * memory. A segment that several messages speak of is opened once and closed with the last of its
 * users, as PyTorch does for the tensors that a process receives.
 *
 * The owner must keep the allocation until every other process has closed it; nothing here knows
 * when that is. Order between the processes' work on the memory is theirs to keep as well.
 *
 * Plain segments are shared whole (cudaIpcGetMemHandle); of growing segments the pages that hold
 * the allocation, through descriptors that the other process fetches from the owner. The system
 * allows that (pidfd_getfd, Linux 5.6) to processes that may trace the owner: of the same user and,
 * with kernel.yama.ptrace_scope 1, a parent of it or one that the owner named with
 * prctl(PR_SET_PTRACER); in containers the capability SYS_PTRACE may be needed. The owner must
 * still run when a message is opened.
 *
 * A message is trusted as far as naming memory goes: whoever can send one chooses which of the
 * memory that other processes share, and this process may open, the pointer stands for, and its
 * contents are theirs to change at any time. So take messages only from processes that may see and
 * change what you do with them. Everything else in a message is verified: the pointer and the size
 * that come back lie in one piece of memory that the device itself says it opened, what is no
 * message of tarn_ipc_export is refused with nothing left open, and no file or descriptor is opened
 * that is not shared device memory.
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

/* Bytes that suffice for the message of an allocation in a plain segment, or of one that lies in up
 * to 32 pages of a growing segment. */
enum {
    TARN_IPC_MESSAGE_SIZE = 256
};

/* Writes the message for an allocation that is handed out just now, `ptr` as it was returned.
 * *length_out is the message's size; when that is more than `capacity`, the call fails with
 * TARN_ERR_LIMIT, having set it. TARN_ERR_INVALID_POINTER for any other pointer,
 * TARN_ERR_NOT_SUPPORTED under backend:cudaMallocAsync, TARN_ERR_DEVICE when the device refuses. */
TARN_API enum tarn_status tarn_ipc_export(struct tarn_allocator *allocator, tarn_ptr ptr,
                                          void *message, size_t capacity, size_t *length_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* Opens a message of another process, for use on the allocator's device, which must be the same
 * device as the owner's. The memory is not the allocator's: it counts nowhere and cannot be freed.
 * Each success is ended with one tarn_ipc_close. *size_out (may be NULL) is the size of the owner's
 * block. TARN_ERR_FORMAT for what is no such message, also where it speaks of more memory than is
 * shared; TARN_ERR_INVALID_ARGUMENT for a message of this process or of another device;
 * TARN_ERR_DEVICE when the device or the system refuses, TARN_ERR_OUT_OF_MEMORY when it has no
 * addresses left for so much. */
TARN_API enum tarn_status tarn_ipc_open(struct tarn_allocator *allocator, const void *message,
                                        size_t length, tarn_ptr *ptr_out, uint64_t *size_out,
                                        struct tarn_error *error) TARN_MUST_CHECK;

/* Ends one use of what tarn_ipc_open returned; the last use of a segment closes it, which waits
 * for no work: wait for the streams that use it first. TARN_ERR_INVALID_POINTER for a pointer that
 * is not open. */
TARN_API enum tarn_status tarn_ipc_close(struct tarn_allocator *allocator, tarn_ptr ptr,
                                         struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
