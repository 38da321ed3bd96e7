/* SPDX-License-Identifier: MIT */
/*
 * Finds which version's rules a recorded run followed. No snapshot says which PyTorch wrote it, and
 * the rules differ only while requests are routed to private pools. So a run with such pools that
 * the settings' rules do not reproduce is tried with the newer ones, which are taken only if they
 * reproduce it exactly.
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
