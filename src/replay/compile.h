/* SPDX-License-Identifier: MIT */
/* Compiles a recorded trace into a program (program.h). */
#ifndef TN_REPLAY_COMPILE_H
#define TN_REPLAY_COMPILE_H

#include "replay/program.h"

/* Compiles the trace of one device; `config` has the recorded settings. On failure there is nothing
 * to release. */
enum tarn_status tn_program_compile(struct tn_program *program, const struct tn_model *model,
                                    int device, const struct tarn_config *config,
                                    struct tarn_error *error) TN_MUST_CHECK;

#endif
