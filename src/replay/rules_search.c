/* SPDX-License-Identifier: MIT */
#include "replay/rules_search.h"

#include "replay/limit.h"
#include "replay/run.h"

/* Whether these settings, under the limit found, reproduce the recorded run. */
static enum tarn_status run_try(const struct tn_program *program, const struct tarn_config *config,
                                bool *same_out, struct tarn_error *error)
{
    const struct tn_runner_room room = tn_runner_room_recorded(&program->limit);
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tn_runner runner;
    enum tarn_status st = tn_runner_open(&runner, program, config, &room, error);

    if (st) {
        return st;
    }
    runner.stop_at_other = true;
    st = tn_run_program(&runner, &result, error);
    tn_runner_close(&runner);
    *same_out = st == TARN_OK && result.first_other < 0;
    return st;
}

/* Whether the newer rules reproduce the run, and the older ones do not. A run that was short of
 * memory is reproduced if there is a limit that does. */
static enum tarn_status newer_try(struct tn_program *program, const struct tarn_config *older,
                                  bool *newer_out, struct tarn_error *error)
{
    struct tarn_config newer = *older;
    bool same = false;
    enum tarn_status st;

    newer.rules = TARN_RULES_2_14;
    if (tn_limit_shows(&program->limit) && program->limit.bytes == 0) {
        st = tn_limit_search(program, &newer, error);
        *newer_out = program->limit.bytes != 0;
        return st;
    }
    st = run_try(program, older, &same, error);
    if (st || same) {
        return st;
    }
    return run_try(program, &newer, newer_out, error);
}

/* Whether a segment was made below an older one. The ranges of one expandable segment are of one
 * age, and few runs have more than one of a kind. */
static bool is_made_below_others(const struct tn_program *program)
{
    const struct tn_vec *start = &program->start_segments;
    const struct tn_start_segment *last =
        start->count > 0 ? (const struct tn_start_segment *)start->items + (start->count - 1)
                         : NULL;
    const uint64_t *made = program->segment_addresses.items;
    uint64_t highest = last ? last->address : 0;

    for (size_t i = 0; i < program->segment_addresses.count; i++) {
        if (made[i] < highest) {
            return true;
        }
        highest = made[i];
    }
    return false;
}

enum tarn_status tn_rules_search(struct tn_program *program, struct tarn_config *config_in_out,
                                 struct tarn_error *error)
{
    const bool has_pools = program->pools.count > 1; /* the first is the default one */
    bool newer = false;

    if (config_in_out->rules != TARN_RULES_2_11 || (!has_pools && !is_made_below_others(program))) {
        return TARN_OK;
    }
    const enum tarn_status st = newer_try(program, config_in_out, &newer, error);

    if (st == TARN_OK && newer) {
        config_in_out->rules = TARN_RULES_2_14;
        tn_program_note(program,
                        "the rules of PyTorch 2.11 do not reproduce the recorded run, those of "
                        "2.13 and newer (rules:2.14) do: they are used");
    }
    return st;
}
