/* SPDX-License-Identifier: MIT */
/*
 * The operating system's memory mapping: address ranges, and memory objects that can be mapped at
 * several addresses. Sizes are multiples of the system's page size (2 MiB multiples always are);
 * memory is committed when touched. Thread-safe.
 */
#ifndef TN_BASE_OS_MAP_H
#define TN_BASE_OS_MAP_H

#include "base/attr.h"
#include "tarn/base.h"

/* Reserves an address range, with zeroed memory behind it if `usable`. NULL on failure. Release
 * with tn_os_range_release. */
void *tn_os_range_reserve(uint64_t size, bool usable) TN_MUST_CHECK;
void tn_os_range_release(void *range, uint64_t size);

/* Creates a zeroed memory object of fixed size; -1 on failure. Its memory lives until it is closed
 * and unmapped. */
int tn_os_object_open(uint64_t size) TN_MUST_CHECK;
void tn_os_object_close(int object);

/* Opens another process's object by its descriptor there; -1 when there is none or permission is
 * missing. Never opens anything but such objects. Close it like an own one. */
int tn_os_object_reopen(int64_t process, int object) TN_MUST_CHECK;

/* The identity of an object, equal in every process: a random number from its creation, and its
 * size; false for other descriptors. */
bool tn_os_object_identity(int object, uint64_t *cookie_out, uint64_t *size_out) TN_MUST_CHECK;

/* Maps the whole object at an address inside a reserved range; false on failure. */
bool tn_os_object_map(int object, void *at, uint64_t size) TN_MUST_CHECK;

/* Makes part of a range inaccessible again; false on failure. */
bool tn_os_range_clear(void *at, uint64_t size) TN_MUST_CHECK;

#endif
