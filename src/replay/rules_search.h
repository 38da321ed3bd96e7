/* SPDX-License-Identifier: MIT */
/*
 * Finds which version's rules a recorded run followed. No snapshot says which PyTorch wrote it. The
 * rules differ while requests are routed to private pools, and in which of several equal blocks
 * serves a request, which shows only if a segment was made below an older one. So a run with such
 * pools or segments that the settings' rules do not reproduce is tried with the newer ones, which
 * are taken only if they reproduce it exactly.
 *
 * The segments that exist when the trace begins count as made in the order of their addresses: the
 * snapshot does not say in which one they were.
 */
#ifndef TN_REPLAY_RULES_SEARCH_H
#define TN_REPLAY_RULES_SEARCH_H

#include "replay/program.h"
#include "tarn/config.h"

/* Sets the rules in the settings, and a limit found with them in the program; a note says so. Does
 * nothing if the settings have the newer rules already. */
enum tarn_status tn_rules_search(struct tn_program *program, struct tarn_config *config_in_out,
                                 struct tarn_error *error) TN_MUST_CHECK;

#endif
