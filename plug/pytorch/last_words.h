/* SPDX-License-Identifier: MIT */
#ifndef PLUG_PYTORCH_LAST_WORDS_H
#define PLUG_PYTORCH_LAST_WORDS_H

/* Prints why the allocation failed and that it cannot be thrown to torch, and ends the process. */
_Noreturn void tn_torch_last_words(const char *why, const char *missing);

#endif
