/* SPDX-License-Identifier: MIT */
/*
 * What code compiled with -fsanitize=thread does with memory that threads share, told to the
 * program that replays a model's traces. accesses.c has the functions that such code calls; the
 * program defines these.
 */
#ifndef TESTS_MODEL_ACCESSES_H
#define TESTS_MODEL_ACCESSES_H

#include <stdint.h>

/* The order is one of memory_order. */
uint64_t access_load(const volatile void *at, unsigned bytes, int order);
void access_store(volatile void *at, unsigned bytes, uint64_t value, int order);
uint64_t access_exchange(volatile void *at, unsigned bytes, uint64_t value, int order);
void access_fence(int order);

/* For access_load and access_store: memory as it is. */
uint64_t memory_read(const volatile void *at, unsigned bytes);
void memory_write(volatile void *at, unsigned bytes, uint64_t value);

#endif
