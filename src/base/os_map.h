/* SPDX-License-Identifier: MIT */
/*
 * Mapping memory, as the operating system does it: address ranges, and memory objects that can be
 * seen at several addresses. Sizes are multiples of the system's page size (2 MiB multiples always
 * are); committed only when touched. Thread-safe.
 */
#ifndef TN_BASE_OS_MAP_H
#define TN_BASE_OS_MAP_H

#include "base/attr.h"
#include "tarn/base.h"

/* A range of addresses with zeroed memory behind it (`usable`) or with none. NULL on failure.
 * Release with tn_os_range_release. */
void *tn_os_range_reserve(uint64_t size, bool usable) TN_MUST_CHECK;
void tn_os_range_release(void *range, uint64_t size);

/* A memory object, zeroed, of that size for good; -1 on failure. Its memory lives until it is
 * closed and nowhere mapped. */
int tn_os_object_open(uint64_t size) TN_MUST_CHECK;
void tn_os_object_close(int object);

/* Another process's object, by the number that it has there; -1 when there is none, or this user
 * may not look into that process. Nothing but such objects is opened, whatever the number stands
 * for. Close it as an own one. */
int tn_os_object_reopen(int64_t process, int object) TN_MUST_CHECK;

/* What an object is, the same in every process: a number drawn at random when it was made, and its
 * size; false when it is none. */
bool tn_os_object_identity(int object, uint64_t *cookie_out, uint64_t *size_out) TN_MUST_CHECK;

/* Shows the whole object at an address inside a reserved range; false on failure. */
bool tn_os_object_map(int object, void *at, uint64_t size) TN_MUST_CHECK;

/* Makes part of a range unusable again; false on failure. */
bool tn_os_range_clear(void *at, uint64_t size) TN_MUST_CHECK;

#endif
