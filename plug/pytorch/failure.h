/* SPDX-License-Identifier: MIT */
/* How failures leave the plug: thrown to torch, or stored for a later query. */
#ifndef PLUG_PYTORCH_FAILURE_H
#define PLUG_PYTORCH_FAILURE_H

#include "tarn/status.h"

/* Stores it as the latest failure. Any thread. */
void tn_torch_note(const struct tarn_error *error);

/* Stores and throws it: c10::OutOfMemoryError for TARN_ERR_OUT_OF_MEMORY, else c10::Error. The
 * caller must not hold a lock. */
_Noreturn void tn_torch_throw(const struct tarn_error *error);

/* A std::string of libstdc++ with these bytes, into its 32 bytes; memory of the C++ operator new,
 * and back. Where there is none they throw std::bad_alloc. Only after tarn_torch_missing_symbol has
 * said that nothing is missing. */
void tn_torch_string_init(void *string, const char *bytes, size_t size);
void *tn_torch_new(size_t size);
void tn_torch_delete(void *memory);

#endif
