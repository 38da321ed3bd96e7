/* SPDX-License-Identifier: MIT */
/* Finds the limit of a recorded run by replaying it under possible limits. */
#include "replay/limit.h"

#include "alloc/config/size_class.h"
#include "replay/run.h"

enum {
    ROUND_TRIES = 96, /* round numbers */
    EVEN_TRIES = 32,  /* evenly spaced between the bounds */
#ifdef TN_LIMITS_LOW  /* tests/torture */
    PAGES_MAX = 8
#else
    PAGES_MAX = 4 << 20 /* of initial states: twice those of all tries on 288 GiB in large pages */
#endif
};

struct search {
    const struct tn_program *program;
    const struct tarn_config *config;
    struct tarn_error *error;
    bool by_device;
    uint64_t tries;
    uint64_t pages;       /* mapped so far */
    uint64_t start_pages; /* upper bound of those that each try maps */
    uint64_t found;
};

static bool may_try(const struct search *search)
{
    return !search->found && search->pages <= PAGES_MAX;
}

/* Pages mapped before the trace. */
static uint64_t start_pages(const struct tn_program *program, const struct tarn_config *config)
{
    const struct tn_start_segment *segments = program->start_segments.items;
    uint64_t pages = 0;

    for (size_t i = 0; i < program->start_segments.count; i++) {
        const uint64_t page = segments[i].is_large ? config->large_segment_size : TN_SMALL_BUFFER;

        pages += segments[i].is_expandable ? segments[i].size / page + 1 : 1;
    }
    return pages;
}

/* Whether that limit reproduces the recorded run: the same addresses, the same failures. */
static enum tarn_status try_limit(struct search *search, uint64_t limit)
{
    struct tarn_replay_result result = {.struct_size = sizeof result};
    const struct tn_runner_room room = {.device = search->by_device ? limit : 0,
                                        .limit = search->by_device ? 0 : limit};
    struct tn_runner runner;
    enum tarn_status st =
        tn_runner_open(&runner, search->program, search->config, &room, search->error);

    search->tries++;
    search->pages += search->start_pages;
    if (st) {
        return st;
    }
    runner.stop_at_other = true;
    st = tn_run_program(&runner, &result, search->error);
    tn_runner_close(&runner);
    if (st == TARN_OK && result.first_other < 0) {
        search->found = limit;
    }
    return st;
}

/* Multiples of `unit` that are no multiples of twice the unit. */
static enum tarn_status try_unit(struct search *search, uint64_t low, uint64_t below, uint64_t unit,
                                 bool largest_unit)
{
    enum tarn_status st = TARN_OK;

    for (uint64_t n = (low + unit - 1) / unit; st == TARN_OK && n < (below + unit - 1) / unit &&
                                               may_try(search) && search->tries < ROUND_TRIES;
         n++) {
        if (largest_unit || n % 2 == 1) {
            st = try_limit(search, n * unit);
        }
    }
    return st;
}

static enum tarn_status try_round(struct search *search, uint64_t low, uint64_t below)
{
    const uint64_t largest = (uint64_t)1 << 30;
    enum tarn_status st = TARN_OK;

    for (uint64_t unit = largest;
         st == TARN_OK && unit >= TN_LIMIT_UNIT && may_try(search) && search->tries < ROUND_TRIES;
         unit /= 2) {
        st = try_unit(search, low, below, unit, unit == largest);
    }
    return st;
}

static enum tarn_status try_even(struct search *search, uint64_t low, uint64_t below)
{
    const uint64_t step = (below - low) / EVEN_TRIES;
    enum tarn_status st = TARN_OK;

    for (uint64_t i = 0; st == TARN_OK && i < EVEN_TRIES && may_try(search); i++) {
        st = try_limit(search, low + i * step);
    }
    return st;
}

enum tarn_status tn_limit_search(struct tn_program *program, const struct tarn_config *config,
                                 struct tarn_error *error)
{
    struct tn_limit *limit = &program->limit;
    struct search search = {.program = program,
                            .config = config,
                            .error = error,
                            .by_device = limit->by_device,
                            .start_pages = start_pages(program, config)};
    const uint64_t low = limit->at_least;
    enum tarn_status st = TARN_OK;

    if (!tn_limit_shows(limit)) {
        return TARN_OK;
    }
    if (limit->by_device) {
        st = try_limit(&search, limit->device);
    }
    if (st == TARN_OK && !search.found) {
        search.by_device = false;
        st = try_round(&search, low, limit->below);
    }
    if (st == TARN_OK && !search.found) {
        st = try_even(&search, low, limit->below);
    }
    limit->by_device = search.by_device;
    limit->bytes = search.found;
    return st;
}
