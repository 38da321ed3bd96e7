/* SPDX-License-Identifier: MIT */
/* A snapshot written when memory runs out: where, what is in it, and what may go wrong. */
#include "support/test.h"

#include "support/child.h"

#include "support/rig.h"
#include "support/temp.h"
#include "tarn/oom_dump.h"
#include "tarn/snapshot.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct analysis {
    struct rig rig;
    struct tarn_history *history;
    struct tarn_oom_dump *dump;
    struct temp_folder folder;
};

static void scene_open(struct analysis *analysis)
{
    struct tarn_sink sink;

    *analysis = (struct analysis){.folder = temp_folder_make()};
    rig_open(&analysis->rig, 64 * MIB, "");
    assert_int_equal(tarn_history_create(NULL, &analysis->history, NULL), TARN_OK);
    tarn_history_get_sink(analysis->history, TARN_CONTEXT_ALL, &sink);
    assert_int_equal(tarn_allocator_add_sink(analysis->rig.allocator, &sink, NULL), TARN_OK);
}

static void scene_close(struct analysis *analysis)
{
    rig_check(&analysis->rig);
    assert_int_equal(tarn_allocator_remove_sink(analysis->rig.allocator, analysis->history, NULL),
                     TARN_OK);
    tarn_allocator_destroy(analysis->rig.allocator);
    tarn_oom_dump_destroy(analysis->dump);
    tarn_history_destroy(analysis->history);
    sim_close(analysis->rig.device);
    temp_folder_remove(&analysis->folder); /* nothing is left, no draft either */
    assert_int_equal(tarn_host_get_usage().live_bytes, analysis->rig.host_bytes);
}

static enum tarn_status dump_to(struct analysis *analysis, const char *name)
{
    char path[400];

    (void)snprintf(path, sizeof path, "%s/%s", analysis->folder.path, name);
    return tarn_oom_dump_create(analysis->rig.allocator, analysis->history, path, &analysis->dump,
                                &analysis->rig.error);
}

static void expect_path(const struct analysis *analysis, const char *name)
{
    char path[400];

    (void)snprintf(path, sizeof path, "%s/%s", analysis->folder.path, name);
    assert_string_equal(tarn_oom_dump_get_path(analysis->dump), path);
}

static void a_failure_leaves_a_snapshot(void **state)
{
    struct analysis analysis;
    struct tarn_snapshot *snapshot = NULL;
    char name[64];

    (void)state;
    scene_open(&analysis);
    assert_int_equal(setenv("RANK", "7", 1), 0);
    assert_int_equal(dump_to(&analysis, "dump-%r-%p-100%%.pickle"), TARN_OK);
    (void)snprintf(name, sizeof name, "dump-7-%ld-100%%.pickle", (long)getpid());
    expect_path(&analysis, name);
    const tarn_ptr ptr = rig_alloc(&analysis.rig, 40 * MIB, 0);

    assert_int_equal(access(tarn_oom_dump_get_path(analysis.dump), F_OK), -1);
    rig_alloc_oom(&analysis.rig, 50 * MIB, 0);
    assert_int_equal(tarn_oom_dump_count(analysis.dump), 1);
    assert_int_equal(tarn_oom_dump_get_status(analysis.dump, NULL), TARN_OK);
    assert_int_equal(tarn_snapshot_load(tarn_oom_dump_get_path(analysis.dump), NULL, &snapshot,
                                        &analysis.rig.error),
                     TARN_OK);
    assert_int_equal(tarn_snapshot_segment_count(snapshot), 1);
    assert_int_equal(tarn_snapshot_trace_length(snapshot, 0), 3); /* segment_alloc, alloc, oom */
    tarn_snapshot_destroy(snapshot);
    rig_free(&analysis.rig, ptr);
    rig_alloc_oom(&analysis.rig, 90 * MIB, 0); /* replaces it */
    assert_int_equal(tarn_oom_dump_count(analysis.dump), 2);
    assert_int_equal(unlink(tarn_oom_dump_get_path(analysis.dump)), 0);
    assert_int_equal(unsetenv("RANK"), 0);
    scene_close(&analysis);
}

static void the_environment_may_say_where(void **state)
{
    struct analysis analysis;
    char path[400];

    (void)state;
    scene_open(&analysis);
    assert_int_equal(unsetenv("TARN_DUMP_ON_OOM"), 0);
    assert_int_equal(tarn_oom_dump_create(analysis.rig.allocator, NULL, NULL, &analysis.dump, NULL),
                     TARN_OK);
    assert_null(analysis.dump);
    (void)snprintf(path, sizeof path, "%s/%%r.json", analysis.folder.path);
    assert_int_equal(setenv("TARN_DUMP_ON_OOM", path, 1), 0);
    assert_int_equal(setenv("SLURM_PROCID", "3", 1), 0);
    assert_int_equal(setenv("RANK", "", 1), 0); /* says nothing */
    assert_int_equal(tarn_oom_dump_create(analysis.rig.allocator, NULL, NULL, &analysis.dump, NULL),
                     TARN_OK);
    expect_path(&analysis, "3.json");
    rig_alloc_oom(&analysis.rig, 90 * MIB, 0);
    assert_int_equal(tarn_oom_dump_get_status(analysis.dump, NULL), TARN_OK);
    assert_int_equal(unlink(tarn_oom_dump_get_path(analysis.dump)), 0);
    assert_int_equal(unsetenv("TARN_DUMP_ON_OOM"), 0);
    assert_int_equal(unsetenv("SLURM_PROCID"), 0);
    assert_int_equal(unsetenv("RANK"), 0);
    scene_close(&analysis);
}

static void wrong_paths_are_refused(void **state)
{
    static char long_path[5000];
    struct analysis analysis;
    struct tarn_error error;

    (void)state;
    memset(long_path, 'x', sizeof long_path - 1);
    scene_open(&analysis);
    const struct {
        const char *path;
        const char *text;
    } wrong[] = {
        {"", "has 1 to 4000 bytes"},
        {long_path, "has 1 to 4000 bytes"},
        {"dump-%d", "position 5"},
        {"dump%", "position 4"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tarn_oom_dump_create(analysis.rig.allocator, NULL, wrong[i].path,
                                              &analysis.dump, &error),
                         TARN_ERR_INVALID_ARGUMENT);
        if (!strstr(error.text, wrong[i].text)) {
            fail_msg("\"%s\" does not contain \"%s\"", error.text, wrong[i].text);
        }
    }
    scene_close(&analysis);
}

static void a_dump_that_fails_says_so(void **state)
{
    struct analysis analysis;
    struct tarn_error error = {.status = TARN_OK};

    (void)state;
    scene_open(&analysis);
    assert_int_equal(dump_to(&analysis, "no/such/folder/dump.pickle"), TARN_OK);
    rig_alloc_oom(&analysis.rig, 90 * MIB, 0); /* with its own status and text */
    assert_int_equal(tarn_oom_dump_count(analysis.dump), 1);
    assert_int_equal(tarn_oom_dump_get_status(analysis.dump, &error), TARN_ERR_IO);
    assert_non_null(strstr(error.text, "no/such/folder"));
    scene_close(&analysis);
}

static void host_memory_may_run_out_as_well(void **state)
{
    struct analysis analysis;
    uint64_t failed = 0;

    (void)state;
    scene_open(&analysis);
    for (uint64_t n = 1; n < 3; n++) {
        tarn_host_fail_nth(n);
        const enum tarn_status st = dump_to(&analysis, "dump.pickle");

        tarn_host_fail_nth(0);
        if (st == TARN_OK) {
            break;
        }
        assert_int_equal(st, TARN_ERR_HOST_MEMORY);
    }
    for (uint64_t n = 1; n < 100; n++) {
        tarn_ptr out = 0;

        tarn_host_fail_nth(n);
        const uint64_t before = tarn_oom_dump_count(analysis.dump);
        const enum tarn_status st =
            tarn_allocator_alloc(analysis.rig.allocator, 90 * MIB, 0, &out, NULL);

        tarn_host_fail_nth(0);
        assert_true(st == TARN_ERR_OUT_OF_MEMORY || st == TARN_ERR_HOST_MEMORY);
        const bool written = tarn_oom_dump_count(analysis.dump) > before &&
                             tarn_oom_dump_get_status(analysis.dump, NULL) == TARN_OK;

        failed += !written;
        assert_int_equal(unlink(tarn_oom_dump_get_path(analysis.dump)), written ? 0 : -1);
    }
    assert_true(failed >= 3);
    scene_close(&analysis);
}

enum {
    THREADS = 4
};

static void *run_out(void *argument)
{
    struct analysis *analysis = argument;
    tarn_ptr out = 0;

    for (int i = 0; i < 10; i++) {
        if (tarn_allocator_alloc(analysis->rig.allocator, 90 * MIB, 0, &out, NULL) !=
            TARN_ERR_OUT_OF_MEMORY) {
            return analysis;
        }
    }
    return NULL;
}

static void threads_that_fail_at_once_take_turns(void **state)
{
    pthread_t threads[THREADS];
    struct analysis analysis;

    (void)state;
    scene_open(&analysis);
    assert_int_equal(dump_to(&analysis, "dump.pickle"), TARN_OK);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_out, &analysis), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failed = NULL;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(tarn_oom_dump_count(analysis.dump), THREADS * 10);
    assert_int_equal(tarn_oom_dump_get_status(analysis.dump, NULL), TARN_OK);
    assert_int_equal(unlink(tarn_oom_dump_get_path(analysis.dump)), 0);
    scene_close(&analysis);
}

/* In a child: an allocator of its own runs out, twice. */
static int rank_runs_out(const char *rank, const char *path)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_oom_dump *dump = NULL;
    struct tarn_error error;
    tarn_ptr ptr;
    int wrong = setenv("RANK", rank, 1) != 0;

    wrong += tarn_allocator_create_on("sim:64MiB", "", &allocator, &error) != TARN_OK;
    wrong += tarn_oom_dump_create(allocator, NULL, path, &dump, &error) != TARN_OK;
    wrong += tarn_allocator_alloc(allocator, 30 * MIB, 0, &ptr, &error) != TARN_OK;
    for (int i = 0; i < 20; i++) {
        wrong +=
            tarn_allocator_alloc(allocator, 90 * MIB, 0, &ptr, &error) != TARN_ERR_OUT_OF_MEMORY;
    }
    wrong += tarn_oom_dump_get_status(dump, &error) != TARN_OK;
    wrong += tarn_oom_dump_count(dump) != 20;
    tarn_allocator_destroy(allocator);
    tarn_oom_dump_destroy(dump);
    return wrong;
}

static void ranks_run_out(const char *path)
{
    static const char *const ranks[] = {"0", "1"};
    pid_t children[2];

    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            child_exit(rank_runs_out(ranks[i], path));
        }
    }
    for (int i = 0; i < 2; i++) {
        int status = -1;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void expect_whole(const char *path)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    if (tarn_snapshot_load(path, NULL, &snapshot, &error)) {
        fail_msg("%s: %s", path, error.text);
    }
    assert_int_equal(tarn_snapshot_segment_count(snapshot), 1);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(unlink(path), 0);
}

/* Each to its own file, and both to one: that is then one of theirs, whole. */
static void ranks_write_at_once(void **state)
{
    const struct temp_folder folder = temp_folder_make();
    char path[400];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/rank-%%r.pickle", folder.path);
    ranks_run_out(path);
    for (int rank = 0; rank < 2; rank++) {
        (void)snprintf(path, sizeof path, "%s/rank-%d.pickle", folder.path, rank);
        expect_whole(path);
    }
    (void)snprintf(path, sizeof path, "%s/both.pickle", folder.path);
    ranks_run_out(path);
    expect_whole(path);
    temp_folder_remove(&folder);
}

static void child_runs_out(void *context)
{
    struct analysis *analysis = context;
    tarn_ptr ptr = 0;

    CHILD_REQUIRE(tarn_allocator_alloc(analysis->rig.allocator, 90 * MIB, 0, &ptr, NULL) !=
                  TARN_OK);
    CHILD_REQUIRE(access(tarn_oom_dump_get_path(analysis->dump), F_OK) != 0);
}

/* What the parent's allocator holds is not the child's to dump. */
static void a_forked_child_dumps_nothing(void **state)
{
    struct analysis analysis;

    (void)state;
    scene_open(&analysis);
    assert_int_equal(dump_to(&analysis, "x.json"), TARN_OK);
    child_run(child_runs_out, &analysis);
    scene_close(&analysis);
}

static void no_more(void *context, const struct tarn_oom *oom)
{
    (void)context;
    (void)oom;
}

static void without_a_place_there_is_no_dump(void **state)
{
    struct analysis analysis;

    (void)state;
    scene_open(&analysis);
    for (int i = 0; i < TARN_OBSERVERS_MAX; i++) {
        assert_int_equal(
            tarn_allocator_add_oom_observer(analysis.rig.allocator, no_more, &analysis), TARN_OK);
    }
    analysis.dump = (struct tarn_oom_dump *)&analysis; /* what was there before */
    assert_int_equal(dump_to(&analysis, "x.json"), TARN_ERR_LIMIT);
    assert_non_null(strstr(analysis.rig.error.text, "dumping when memory runs out: "));
    assert_null(analysis.dump);
    scene_close(&analysis);
}

static void paths_can_be_expanded_alone(void **state)
{
    char text[TARN_OOM_PATH_BYTES] = "x";
    char wanted[64];
    struct tarn_error error;

    (void)state;
    assert_int_equal(unsetenv("TARN_DUMP_ON_OOM"), 0);
    assert_int_equal(tarn_oom_dump_expand(NULL, text, &error), TARN_OK);
    assert_string_equal(text, "");
    assert_int_equal(setenv("TARN_DUMP_ON_OOM", "a-%p-%%", 1), 0);
    assert_int_equal(tarn_oom_dump_expand(NULL, text, &error), TARN_OK);
    (void)snprintf(wanted, sizeof wanted, "a-%ld-%%", (long)getpid());
    assert_string_equal(text, wanted);
    assert_int_equal(tarn_oom_dump_expand("b-%r", text, &error), TARN_OK);
    assert_string_equal(text, "b-0");
    assert_int_equal(tarn_oom_dump_expand("%x", text, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(unsetenv("TARN_DUMP_ON_OOM"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_leaves_a_snapshot),
        cmocka_unit_test(the_environment_may_say_where),
        cmocka_unit_test(wrong_paths_are_refused),
        cmocka_unit_test(a_dump_that_fails_says_so),
        cmocka_unit_test(host_memory_may_run_out_as_well),
        cmocka_unit_test(a_forked_child_dumps_nothing),
        cmocka_unit_test(without_a_place_there_is_no_dump),
        cmocka_unit_test(ranks_write_at_once),
        cmocka_unit_test(paths_can_be_expanded_alone),
        cmocka_unit_test(threads_that_fail_at_once_take_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
