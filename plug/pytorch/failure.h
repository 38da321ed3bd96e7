/* SPDX-License-Identifier: MIT */
/* How failures leave the plug: thrown to torch, or kept for whoever asks. */
#ifndef PLUG_PYTORCH_FAILURE_H
#define PLUG_PYTORCH_FAILURE_H

#include "tarn/status.h"

/* Keeps it as the latest failure. Any thread. */
void tn_torch_note(const struct tarn_error *error);

/* Keeps it and throws it: c10::OutOfMemoryError for TARN_ERR_OUT_OF_MEMORY, else c10::Error. The
 * caller may hold no lock. */
_Noreturn void tn_torch_throw(const struct tarn_error *error);

#endif
