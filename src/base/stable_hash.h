/* SPDX-License-Identifier: MIT */
/*
 * A hash that is the same in every run, for what is written to files: FNV-1a by words of eight
 * bytes, the last one filled up with zeros, folded after each. Not for tables (tn_hash_bytes).
 */
#ifndef TN_BASE_STABLE_HASH_H
#define TN_BASE_STABLE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TN_STABLE_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* `hash` is that of what comes before, TN_STABLE_HASH_BEGIN at first. */
static inline uint64_t tn_stable_hash(uint64_t hash, const void *bytes, size_t size)
{
    const char *at = bytes;

    while (size > 0) {
        const size_t length = size < sizeof hash ? size : sizeof hash;
        uint64_t word = 0;

        if (length == sizeof word) {
            memcpy(&word, at, sizeof word); /* of a size that is known: one instruction */
        } else {
            memcpy(&word, at, length);
        }
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
        at += length;
        size -= length;
    }
    return hash;
}

#endif
