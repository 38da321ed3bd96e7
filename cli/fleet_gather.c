/* SPDX-License-Identifier: MIT */
/*
 * With MPI: process 0 expands the arguments and sizes the files, all compute the same assignment,
 * largest file first to the process with least to read; then summaries go up a binary tree. Merging
 * is exact, so neither the assignment nor the number of processes changes what is reported.
 */
#include "fleet_gather.h"

#include "fleet_team.h"
#include "output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CODE_BITS = 8
};

struct bytes {
    char *data;
    size_t size;
    size_t room;
};

/* A file and who reads it. */
struct share {
    uint64_t size;
    size_t number; /* of the file */
    size_t owner;
};

/* ---- bytes ---- */

static enum tarn_status bytes_write(void *context, const char *data, size_t size)
{
    struct bytes *bytes = context;

    if (size > bytes->room - bytes->size) {
        const size_t room = (bytes->size + size) * 2;
        char *moved = realloc(bytes->data, room);

        if (!moved) {
            return TARN_ERR_HOST_MEMORY;
        }
        bytes->data = moved;
        bytes->room = room;
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return TARN_OK;
}

/* ---- the list ---- */

static uint64_t file_size(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && about.st_size > 0 ? (uint64_t)about.st_size : 0;
}

/* For each file its size, a NUL, its path, a NUL; and one at the end, so that it is never empty. */
static bool list_pack(const struct cli_fleet_files *files, struct bytes *list)
{
    bool good = true;

    for (size_t i = 0; good && i < files->count; i++) {
        char size[24];
        const int length = snprintf(size, sizeof size, "%" PRIu64, file_size(files->paths[i]));

        good = bytes_write(list, size, (size_t)length + 1) == TARN_OK &&
               bytes_write(list, files->paths[i], strlen(files->paths[i]) + 1) == TARN_OK;
    }
    return good && bytes_write(list, "", 1) == TARN_OK;
}

static size_t list_count(const struct bytes *list)
{
    size_t count = 0;

    for (size_t i = 0; i < list->size; i++) {
        count += list->data[i] == '\0' ? 1 : 0;
    }
    return count / 2;
}

/* Room for one more than there are; the paths are borrowed from the list. */
static bool list_unpack(const struct bytes *list, const char ***paths_out,
                        struct share **shares_out, size_t *count_out)
{
    const size_t count = list_count(list);
    const char **paths = calloc(count + 1, sizeof *paths);
    struct share *shares = calloc(count + 1, sizeof *shares);
    const char *at = list->data;

    *paths_out = paths;
    *shares_out = shares;
    *count_out = count;
    for (size_t i = 0; paths && shares && i < count; i++) {
        shares[i] = (struct share){.size = strtoull(at, NULL, 10), .number = i};
        at += strlen(at) + 1;
        paths[i] = at;
        at += strlen(at) + 1;
    }
    return paths && shares;
}

/* ---- who reads what ---- */

static int largest_first(const void *left, const void *right)
{
    const struct share *a = left;
    const struct share *b = right;

    if (a->size != b->size) {
        return a->size > b->size ? -1 : 1;
    }
    return (a->number > b->number) - (a->number < b->number);
}

static int by_number(const void *left, const void *right)
{
    const struct share *a = left;
    const struct share *b = right;

    return (a->number > b->number) - (a->number < b->number);
}

/* A file counts one byte more than it has, so that missing ones are spread as well. */
static bool shares_assign(struct share *shares, size_t count, size_t team)
{
    uint64_t *loads = calloc(team, sizeof *loads);

    if (!loads) {
        return false;
    }
    qsort(shares, count, sizeof *shares, largest_first);
    for (size_t i = 0; i < count; i++) {
        size_t least = 0;

        for (size_t k = 1; k < team; k++) {
            least = loads[k] < loads[least] ? k : least;
        }
        shares[i].owner = least;
        loads[least] += shares[i].size + 1;
    }
    qsort(shares, count, sizeof *shares, by_number);
    free(loads);
    return true;
}

/* ---- reading ---- */

/* The first failure: number of the file, and its code in the last bits. UINT64_MAX: none. */
static uint64_t files_read(const struct cli_fleet_gather *gather, struct tarn_fleet *fleet,
                           const char *const *paths, const struct share *shares, size_t count,
                           size_t self)
{
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < count; i++) {
        int code = CLI_EXIT_OK;

        if (shares[i].owner == self) {
            cli_fleet_add_file(gather->call->command, fleet, paths[i], NULL, gather->options,
                               gather->narrows, &code);
        }
        if (code && first == UINT64_MAX) {
            first = (uint64_t)i << CODE_BITS | (uint64_t)code;
        }
    }
    return first;
}

/* ---- merging ---- */

static enum tarn_status fleet_send(const struct cli_fleet_team *team, struct tarn_fleet *fleet,
                                   size_t to, struct tarn_error *error)
{
    struct bytes bytes = {0};
    const struct tarn_writer writer = {bytes_write, &bytes};
    const enum tarn_status status = tarn_fleet_write(fleet, &writer, error);

    /* Nothing is no summary: the receiver fails as well. */
    cli_fleet_team_send(team, to, bytes.data, status ? 0 : bytes.size);
    free(bytes.data);
    return status;
}

static enum tarn_status fleet_receive(const struct cli_fleet_team *team, struct tarn_fleet *fleet,
                                      size_t from, struct tarn_error *error)
{
    size_t size;
    char *bytes = cli_fleet_team_receive(team, from, &size);
    const enum tarn_status status = tarn_fleet_load_memory(fleet, bytes, size, NULL, error);

    free(bytes);
    return status;
}

/* Process 0 has all of them in the end. Every process goes through every step, whatever fails. */
static enum tarn_status fleet_merge(const struct cli_fleet_team *team, struct tarn_fleet *fleet,
                                    struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;

    for (size_t step = 1; step < team->count; step *= 2) {
        enum tarn_status now = TARN_OK;

        if (team->number % (2 * step) == step) {
            now = fleet_send(team, fleet, team->number - step, status ? NULL : error);
            return status ? status : now;
        }
        if (team->number + step < team->count) {
            now = fleet_receive(team, fleet, team->number + step, status ? NULL : error);
        }
        status = status ? status : now;
    }
    return status;
}

/* ---- all of it ---- */

static void code_keep(int *code, int failure)
{
    *code = *code ? *code : failure;
}

/* Process 0 has the list; false without memory anywhere. */
static bool list_share(const struct cli_fleet_gather *gather, const struct cli_fleet_team *team,
                       struct bytes *list, int *code)
{
    struct cli_fleet_files files = {.paths = NULL};
    bool good = true;

    if (team->number == 0) {
        good = cli_fleet_files_collect(&files, gather->call, code) && list_pack(&files, list);
        cli_fleet_files_release(&files);
    }
    if (!good) {
        free(list->data);
        *list = (struct bytes){0};
    }
    return cli_fleet_team_share(team, &list->data, &list->size) && good && list->size > 0;
}

/* The list is there in every process, and so are the calls that follow. */
static enum tarn_status list_add(const struct cli_fleet_gather *gather,
                                 const struct cli_fleet_team *team, const struct bytes *list,
                                 struct tarn_fleet *fleet, int *code)
{
    struct tarn_error error = {.offset = -1};
    const char **paths;
    struct share *shares;
    size_t count;
    const bool good =
        list_unpack(list, &paths, &shares, &count) && shares_assign(shares, count, team->count);
    uint64_t first = good ? files_read(gather, fleet, paths, shares, count, team->number)
                          : (uint64_t)CLI_EXIT_LIMIT; /* before every file */

    free(shares);
    free(paths);
    const enum tarn_status status = fleet_merge(team, fleet, &error);

    if (status) {
        first = (uint64_t)cli_fail_status(gather->call->command, status, &error, NULL);
    }
    first = cli_fleet_team_least(team, first);
    if (first != UINT64_MAX) {
        code_keep(code, (int)(first & ((1U << CODE_BITS) - 1)));
    }
    return good ? status : TARN_ERR_HOST_MEMORY;
}

static bool labels_load(const struct cli_fleet_gather *gather, struct tarn_fleet *fleet, int *code)
{
    struct tarn_error error = {.offset = -1};

    if (gather->labels && tarn_fleet_load_labels(fleet, gather->labels, &error)) {
        *code = (int)cli_fail_status(gather->call->command, error.status, &error, gather->labels);
        return false;
    }
    return true;
}

bool cli_fleet_gather(const struct cli_fleet_gather *gather, struct tarn_fleet *fleet,
                      int *code_out)
{
    struct cli_fleet_team team = {.count = 1};
    struct bytes list = {0};
    bool good;

    if (!labels_load(gather, fleet, code_out)) {
        return false;
    }
    if (gather->uses_mpi) {
        const enum cli_exit joined = cli_fleet_team_join(gather->call->command, &team);

        if (joined) {
            *code_out = (int)joined;
            return false;
        }
    }
    good = list_share(gather, &team, &list, code_out);
    if (!good) {
        *code_out = (int)cli_fail(gather->call->command, CLI_EXIT_LIMIT, "host out of memory");
    }
    good = good && list_add(gather, &team, &list, fleet, code_out) == TARN_OK;
    free(list.data);
    if (team.number > 0) {
        *code_out = CLI_EXIT_OK; /* process 0 returns it */
    }
    return good && team.number == 0 &&
           (*code_out == CLI_EXIT_OK || tarn_fleet_rank_count(fleet) > 0);
}
