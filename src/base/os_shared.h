/* SPDX-License-Identifier: MIT */
/*
 * Files that processes of one user share, in a folder that nobody else can enter: mapped memory,
 * and sleeping until a word of it changes. Thread-safe.
 */
#ifndef TN_BASE_OS_SHARED_H
#define TN_BASE_OS_SHARED_H

#include "base/attr.h"
#include "tarn/base.h"

#include <stdatomic.h>

enum {
    TN_FOLDER_PATH_MAX = 200 /* with its NUL: the address of a socket has room for little more */
};

/* The folder `name` in $XDG_RUNTIME_DIR (`runtime`: its value, which may be NULL), or where that is
 * not set in /run/user/UID, or else /tmp/NAME-UID; created if it does not exist and `create`. It
 * must be a directory (not a link), belong to this user (root may look at anybody's) and be closed
 * to everybody else. False with
 * errno: ENOENT when there is none, EPERM when it is somebody else's or open to others. */
bool tn_os_folder_private(const char *runtime, const char *name, bool create,
                          char path_out[TN_FOLDER_PATH_MAX]) TN_MUST_CHECK;

/* Creates a file of that size in place of any other, for this user alone, and maps it. Its memory
 * is really there: writing to it later cannot fail. A forked child does not have the mapping. NULL
 * with errno. Unmap with tn_os_shared_unmap. */
void *tn_os_shared_create(const char *path, uint64_t size) TN_MUST_CHECK;
void tn_os_shared_unmap(void *memory, uint64_t size);

/* Removes a file; that there is none is no failure. The second function only if it is still the
 * one that was opened. */
void tn_os_shared_remove(const char *path);
void tn_os_shared_remove_same(int file, const char *path);

bool tn_os_shared_exists(const char *path);

/* Opens a regular file of this user, or of any for root, never following a link, and for writing if
 * that is allowed; -1 with errno, EPERM if it belongs to somebody else. Close with
 * tn_os_descriptor_close. */
int tn_os_shared_open(const char *path, bool *writable_out) TN_MUST_CHECK;

/* Reads exactly `size` bytes; false when the file is shorter. Never faults, whatever others do to
 * the file. */
bool tn_os_shared_read(int file, uint64_t offset, void *bytes_out, size_t size) TN_MUST_CHECK;
bool tn_os_shared_write(int file, uint64_t offset, const void *bytes, size_t size) TN_MUST_CHECK;

/* Visits the names in a folder until `visit` returns false; false with errno when it cannot be
 * read. */
bool tn_os_folder_list(const char *path, bool (*visit)(void *context, const char *name),
                       void *context) TN_MUST_CHECK;

/* Maps the first `size` bytes, for the two functions below only; NULL on failure. */
void *tn_os_shared_map(int file, uint64_t size) TN_MUST_CHECK;

/* Sleeps while the word, in any mapping of the file, is `expected`, at most `ns` nanoseconds
 * (UINT64_MAX: any time); may return early. */
void tn_os_shared_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t ns);

/* Wakes all that sleep on the word, in every process. */
void tn_os_shared_wake(const _Atomic uint32_t *word);

#endif
