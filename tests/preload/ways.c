/* SPDX-License-Identifier: MIT */
/*
 * ways WAY [ARGUMENT]: finds the driver's functions in one of several ways and uses them. DEEP
 * comes from the build.
 */
#define _GNU_SOURCE /* dlvsym, RTLD_DEEPBIND */
#include "preload/program.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int get_v2(const char *name, void **function, int version, uint64_t flags, int *found);
typedef int get_v1(const char *name, void **function, int version, uint64_t flags);

int preload_next(void);

static void *driver_open(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (!library) {
        program_fail("dlopen");
    }
    return library;
}

/* ---- the ways ---- */

static void *find_versioned(void *library, const char *name)
{
    return dlvsym(library, name, "libcuda.so.1");
}

static void way_dlsym(struct cu *cu)
{
    program_find(cu, driver_open(), dlsym);
}

static void way_dlvsym(struct cu *cu)
{
    program_find(cu, driver_open(), find_versioned);
}

static void way_default(struct cu *cu)
{
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) {
        program_fail("dlopen");
    }
    program_find(cu, RTLD_DEFAULT, dlsym);
}

/* As a runtime does that is linked into the program: asks dlsym for cuGetProcAddress, and that for
 * the rest, itself included. */
static void proc_find(struct cu *cu, uint64_t flags)
{
    void *address = dlsym(driver_open(), "cuGetProcAddress_v2");
    get_v2 *get;
    int status = 0;

    if (!address) {
        program_fail("cuGetProcAddress_v2");
    }
    memcpy(&get, &address, sizeof get);
#define CU_FIND(exported, plain, since, parameters)                                                \
    if (get(#plain, &address, 13000, flags, &status) != 0 &&                                       \
        get(#plain, &address, 13000, 0, &status) != 0) {                                           \
        program_fail(#plain);                                                                      \
    }                                                                                              \
    memcpy(&cu->exported, &address, sizeof address);
    CU_FUNCTIONS(CU_FIND)
#undef CU_FIND
}

/* The first of the two. */
static void way_proc_v1(struct cu *cu)
{
    void *address = dlsym(driver_open(), "cuGetProcAddress");
    get_v1 *get;

    if (!address) {
        program_fail("cuGetProcAddress");
    }
    memcpy(&get, &address, sizeof get);
#define CU_FIND(exported, plain, since, parameters)                                                \
    if (get(#plain, &address, 11040, 0) != 0) {                                                    \
        program_fail(#plain);                                                                      \
    }                                                                                              \
    memcpy(&cu->exported, &address, sizeof address);
    CU_FUNCTIONS(CU_FIND)
#undef CU_FIND
}

static void way_proc(struct cu *cu)
{
    proc_find(cu, 0);
}

static void way_ptsz(struct cu *cu)
{
    proc_find(cu, 2);
}

/* ---- what else programs do ---- */

static void deep(void)
{
    void *library = dlopen(DEEP, RTLD_LAZY | RTLD_DEEPBIND);
    void *found = library ? dlsym(library, "deep_work") : NULL;
    void (*work)(void);

    if (!found) {
        program_fail("dlopen " DEEP);
    }
    memcpy(&work, &found, sizeof work);
    work();
}

/* Functions at exit that run after those which were registered later, and a destructor after all of
 * them: what they free is freed, recorded or not. */
static const struct cu *last_cu;
static uint64_t last_blocks[2];

static void free_at_exit(void)
{
    (void)printf("at exit: %d\n", last_cu->cuMemFree_v2(last_blocks[0]));
    (void)fflush(stdout);
}

__attribute__((destructor)) static void free_last(void)
{
    uint64_t block = 0;

    if (last_cu) {
        (void)printf("last: %d\n", last_cu->cuMemFree_v2(last_blocks[1]));
        (void)printf("last: %d\n", last_cu->cuMemAlloc_v2(&block, 4096));
        (void)fflush(stdout);
    }
}

static void ends(struct cu *cu)
{
    static struct cu kept;

    kept = *cu;
    last_cu = &kept;
    if (atexit(free_at_exit) != 0 || cu->cuMemAlloc_v2(&last_blocks[0], 1024) ||
        cu->cuMemAlloc_v2(&last_blocks[1], 2048)) {
        program_fail("at exit");
    }
}

/* Asks for its file, and leaves in a way that writes none. */
static void ask_and_leave(const struct cu *cu, const char *file)
{
    program_work(cu);
    (void)fflush(stdout);
    if (file[0] != '\0') {
        (void)raise(SIGUSR2);
        for (int i = 0; i < 3000 && access(file, F_OK) != 0; i++) {
            (void)usleep(10000);
        }
    }
    _exit(3);
}

/* The child uses the driver for itself; the parent had not. */
static void forks(struct cu *cu)
{
    int status = 0;

    (void)fflush(stdout);
    const pid_t child = fork();

    if (child == 0) {
        program_begin(cu);
        program_work(cu);
        exit(0);
    }
    (void)waitpid(child, &status, 0);
    (void)printf("child: %d\n", status);
}

/* The parent has used the driver, and the child does not: it writes nothing. */
static void forks_late(struct cu *cu)
{
    int status = 0;

    program_begin(cu);
    program_work(cu);
    (void)fflush(stdout);
    const pid_t child = fork();

    if (child == 0) {
        exit(0);
    }
    (void)waitpid(child, &status, 0);
    (void)printf("child: %d\n", status);
}

static void magic(void)
{
    void *address = dlsym(driver_open(), "cuMemAllocMagic");

    (void)printf("magic: %d\n", address != NULL);
    (void)dlsym(driver_open(), "cuMemAllocMagic");
    (void)printf("none: %d\n", dlsym(driver_open(), "cuMemAllocNever") != NULL);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    const char *then = argc > 2 ? argv[2] : "";
    struct cu cu;

    if (strcmp(way, "next") == 0) {
        (void)printf("next: %d\n", preload_next());
        return 0;
    }
    if (strcmp(way, "magic") == 0) {
        magic();
        return 0;
    }
    if (strcmp(way, "deep") == 0) {
        deep();
        return 0;
    }
    if (strcmp(way, "exec") == 0) {
        (void)execl(argv[0], argv[0], "dlsym", (char *)NULL);
        return 9;
    }
    if (strcmp(way, "dlvsym") == 0) {
        way_dlvsym(&cu);
    } else if (strcmp(way, "default") == 0) {
        way_default(&cu);
    } else if (strcmp(way, "proc") == 0) {
        way_proc(&cu);
    } else if (strcmp(way, "proc_v1") == 0) {
        way_proc_v1(&cu);
    } else if (strcmp(way, "ptsz") == 0) {
        way_ptsz(&cu);
    } else {
        way_dlsym(&cu);
    }
    if (strcmp(then, "fork") == 0) {
        forks(&cu);
        return 0;
    }
    if (strcmp(then, "share") == 0) {
        program_share(&cu);
        return 0;
    }
    if (strcmp(then, "late") == 0) {
        forks_late(&cu);
        return 0;
    }
    program_begin(&cu);
    if (strcmp(then, "threads") == 0) {
        program_threads(&cu);
    } else if (strcmp(then, "ends") == 0) {
        ends(&cu);
    } else if (strcmp(then, "ask") == 0) {
        ask_and_leave(&cu, argc > 3 ? argv[3] : "");
    } else if (strcmp(then, "kill") == 0) {
        program_work(&cu);
        (void)raise(SIGTERM);
        (void)sleep(60); /* the signal comes a moment later */
    } else if (strcmp(then, "stay") == 0) {
        program_work(&cu);
        (void)getchar(); /* until standard input ends */
    } else {
        program_work(&cu);
    }
    return 3;
}
