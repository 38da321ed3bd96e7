/* SPDX-License-Identifier: MIT */
#ifndef PLUG_PYTORCH_LAST_WORDS_H
#define PLUG_PYTORCH_LAST_WORDS_H

/* Prints why memory could not be had and that torch cannot be told, and ends the process. */
_Noreturn void tn_torch_last_words(const char *why, const char *missing);

#endif
