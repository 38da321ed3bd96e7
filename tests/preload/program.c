/* SPDX-License-Identifier: MIT */
#include "preload/program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

void program_fail(const char *what)
{
    (void)fprintf(stderr, "the program fails: %s\n", what);
    exit(9);
}

static void print(const char *name, int result)
{
    (void)printf("%s: %d\n", name, result);
}

void program_find(struct cu *cu, void *library, void *(*find)(void *library, const char *name))
{
#define CU_FIND(exported, plain, since, parameters)                                                \
    {                                                                                              \
        void *function = find(library, #exported);                                                 \
                                                                                                   \
        if (!function) {                                                                           \
            program_fail(#exported);                                                               \
        }                                                                                          \
        memcpy(&cu->exported, &function, sizeof function);                                         \
    }
    CU_FUNCTIONS(CU_FIND)
#undef CU_FIND
}

void program_begin(const struct cu *cu)
{
    void *context = NULL;

    print("init", cu->cuInit(0));
    print("retain", cu->cuDevicePrimaryCtxRetain(&context, 0));
    print("push", cu->cuCtxPushCurrent_v2(context));
}

/* What is written can be read. */
static void touch(const struct cu *cu, uint64_t address, size_t size)
{
    unsigned char *there = malloc(size);
    unsigned char *back = malloc(size);

    if (!there || !back) {
        program_fail("malloc");
    } else {
        memset(there, 42, size);
        memset(back, 0, size);
        print("write", cu->cuMemcpyHtoD_v2(address, there, size));
        print("read", cu->cuMemcpyDtoH_v2(back, address, size));
        print("same", memcmp(there, back, size));
    }
    free(there);
    free(back);
}

static void ask(const struct cu *cu, uint64_t address, size_t size)
{
    uint64_t base = 0;
    size_t length = 0;

    print("range", cu->cuMemGetAddressRange_v2(&base, &length, address + size / 2));
    (void)printf("offset %zu, size %zu\n", (size_t)(address - base), length);
    print("attribute", cu->cuPointerGetAttribute(&base, 11, address + 1));
    (void)printf("offset %zu\n", (size_t)(address - base));
}

static void plain(const struct cu *cu)
{
    uint64_t small = 0;
    uint64_t large = 0;
    uint64_t rows = 0;
    size_t pitch = 0;

    print("alloc", cu->cuMemAlloc_v2(&small, 1024));
    print("alloc", cu->cuMemAlloc_v2(&large, 3 * MIB));
    print("pitch", cu->cuMemAllocPitch_v2(&rows, &pitch, 1000, 1024, 4));
    touch(cu, small, 1024);
    touch(cu, large, 3 * MIB);
    touch(cu, rows, pitch * 1024);
    ask(cu, small, 1024);
    ask(cu, large, 3 * MIB);
    print("free", cu->cuMemFree_v2(small));
    print("free", cu->cuMemFree_v2(large));
    print("free", cu->cuMemFree_v2(rows));
    print("again", cu->cuMemFree_v2(large));
    print("inside", cu->cuMemFree_v2(large + 512));
    print("nothing", cu->cuMemFree_v2(0));
    print("too much", cu->cuMemAlloc_v2(&large, (size_t)1 << 50));
}

static void by_stream(const struct cu *cu)
{
    uint64_t stream = 0;
    uint64_t block = 0;
    uint64_t other = 0;

    print("stream", cu->cuStreamCreate(&stream, 1));
    print("async", cu->cuMemAllocAsync(&block, 2 * MIB, stream));
    print("async", cu->cuMemAllocAsync(&other, MIB, 0));
    touch(cu, block, 2 * MIB);
    print("free async", cu->cuMemFreeAsync(block, stream));
    print("free async", cu->cuMemFreeAsync(other, stream));
    print("wait", cu->cuStreamSynchronize(stream));
    print("destroy", cu->cuStreamDestroy_v2(stream));
}

static void other_kinds(const struct cu *cu)
{
    uint64_t managed = 0;
    void *host = NULL;
    void *portable = NULL;

    print("managed", cu->cuMemAllocManaged(&managed, MIB, 1));
    print("free", cu->cuMemFree_v2(managed));
    print("host", cu->cuMemAllocHost_v2(&host, 4096));
    print("host", cu->cuMemHostAlloc(&portable, 8192, 1));
    memset(host, 1, 4096);
    print("free host", cu->cuMemFreeHost(host));
    print("free host", cu->cuMemFreeHost(portable));
}

static void pages(const struct cu *cu)
{
    const struct cu_prop prop = {
        .type = 1, .handle_types = 1, .location_type = 1, .location_id = 0, .rdma = 1};
    const struct cu_access access = {1, 0, 3};
    uint64_t range = 0;
    uint64_t page = 0;

    print("reserve", cu->cuMemAddressReserve(&range, 4 * MIB, 0, 0, 0));
    print("create", cu->cuMemCreate(&page, 2 * MIB, &prop, 0));
    print("map", cu->cuMemMap(range, 2 * MIB, 0, page, 0));
    print("access", cu->cuMemSetAccess(range, 2 * MIB, &access, 1));
    touch(cu, range, 2 * MIB);
    print("unmap", cu->cuMemUnmap(range, 2 * MIB));
    print("release", cu->cuMemRelease(page));
    print("give back", cu->cuMemAddressFree(range, 4 * MIB));
}

void program_work(const struct cu *cu)
{
    uint64_t kept = 0;
    size_t unused = 0;
    size_t total = 0;

    plain(cu);
    by_stream(cu);
    other_kinds(cu);
    pages(cu);
    print("alloc", cu->cuMemAlloc_v2(&kept, 5 * MIB));
    print("info", cu->cuMemGetInfo_v2(&unused, &total));
    (void)printf("total %zu, some is used: %d\n", total, unused < total);
}

static void *thread_work(void *argument)
{
    const struct cu *cu = argument;
    uint64_t blocks[16];
    void *context = NULL;

    (void)cu->cuDevicePrimaryCtxRetain(&context, 0);
    (void)cu->cuCtxPushCurrent_v2(context);
    for (int turn = 0; turn < 50; turn++) {
        for (size_t i = 0; i < 16; i++) {
            if (i % 2 ? cu->cuMemAllocAsync(&blocks[i], 512 * (i + 1), 0)
                      : cu->cuMemAlloc_v2(&blocks[i], 512 * (i + 1))) {
                program_fail("a thread's allocation");
            }
        }
        for (size_t i = 0; i < 16; i++) {
            if (i % 2 ? cu->cuMemFreeAsync(blocks[i], 0) : cu->cuMemFree_v2(blocks[i])) {
                program_fail("a thread's free");
            }
        }
    }
    return NULL;
}

void program_threads(struct cu *cu)
{
    pthread_t made[4];

    for (int i = 0; i < 4; i++) {
        if (pthread_create(&made[i], NULL, thread_work, cu) != 0) {
            program_fail("pthread_create");
        }
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(made[i], NULL);
    }
    (void)printf("threads are done\n");
}

/* ---- two processes ---- */

enum {
    SHARES = 3,
    OPENS_IN_TURN = 2
};

static const size_t share_sizes[SHARES] = {1000, 3 * MIB, 30 * MIB};

struct channel {
    int to_opener[2];
    int to_owner[2];
};

static void send_all(int file, const void *bytes, size_t size)
{
    if (write(file, bytes, size) != (ssize_t)size) {
        program_fail("write");
    }
}

static void receive_all(int file, void *bytes, size_t size)
{
    if (read(file, bytes, size) != (ssize_t)size) {
        program_fail("read");
    }
}

/* Whether all of the memory has that byte. */
static int has_byte(const struct cu *cu, uint64_t address, size_t size, int byte)
{
    unsigned char *back = malloc(size);
    int same = back && cu->cuMemcpyDtoH_v2(back, address, size) == 0;

    for (size_t i = 0; same && i < size; i++) {
        same = back[i] == byte;
    }
    free(back);
    return same;
}

static void fill(const struct cu *cu, uint64_t address, size_t size, int byte)
{
    unsigned char *bytes = malloc(size);

    if (!bytes) {
        program_fail("malloc");
    }
    memset(bytes, byte, size);
    print("fill", cu->cuMemcpyHtoD_v2(address, bytes, size));
    free(bytes);
}

/* The last handle is that of memory that has been freed. */
static void owner_work(const struct cu *cu, const struct channel *channel)
{
    struct cu_ipc_handle handle;
    uint64_t blocks[SHARES];
    uint64_t other = 0;
    char done;

    program_begin(cu);
    print("alloc", cu->cuMemAlloc_v2(&other, 5000)); /* what follows is not at a segment's start */
    for (int i = 0; i < SHARES; i++) {
        print("alloc", cu->cuMemAlloc_v2(&blocks[i], share_sizes[i]));
        fill(cu, blocks[i], share_sizes[i], i + 1);
        print("get", cu->cuIpcGetMemHandle(&handle, blocks[i]));
        send_all(channel->to_opener[1], &handle, sizeof handle);
    }
    receive_all(channel->to_owner[0], &done, 1);
    for (int i = 0; i < SHARES; i++) {
        print("written", has_byte(cu, blocks[i], share_sizes[i], 100 + i));
        print("free", cu->cuMemFree_v2(blocks[i]));
    }
    send_all(channel->to_opener[1], &done, 1);
    receive_all(channel->to_owner[0], &done, 1);
    print("free", cu->cuMemFree_v2(other));
}

static void opener_work(const struct cu *cu, const struct channel *channel)
{
    struct cu_ipc_handle handles[SHARES];
    uint64_t there[SHARES] = {0};
    uint64_t own = 0;
    char done = 0;

    program_begin(cu);
    print("alloc", cu->cuMemAlloc_v2(&own, MIB));
    for (int i = 0; i < SHARES; i++) {
        receive_all(channel->to_opener[0], &handles[i], sizeof handles[i]);
    }
    for (int turn = 0; turn < OPENS_IN_TURN; turn++) {
        for (int i = 0; i < SHARES; i++) {
            print("open", cu->cuIpcOpenMemHandle_v2(&there[i], handles[i], 1));
            print("seen", has_byte(cu, there[i], share_sizes[i], turn == 0 ? i + 1 : 100 + i));
            fill(cu, there[i], share_sizes[i], 100 + i);
        }
        for (int i = 0; i < SHARES; i++) {
            print("close", cu->cuIpcCloseMemHandle(there[i]));
        }
    }
    print("closed again", cu->cuIpcCloseMemHandle(there[0]) != 0);
    send_all(channel->to_owner[1], &done, 1);
    receive_all(channel->to_opener[0], &done, 1);
    print("open what is gone", cu->cuIpcOpenMemHandle_v2(&there[0], handles[0], 1) != 0);
    send_all(channel->to_owner[1], &done, 1);
    print("free", cu->cuMemFree_v2(own));
}

/* The owner's lines come first: it ends while the opener still keeps its own. */
void program_share(const struct cu *cu)
{
    struct channel channel;
    int status = 0;

    if (pipe(channel.to_opener) != 0 || pipe(channel.to_owner) != 0) {
        program_fail("pipe");
    }
    (void)fflush(stdout);
    const pid_t child = fork();

    if (child == 0) {
        owner_work(cu, &channel);
        exit(0); /* its output is flushed here: it is less than what a stream keeps */
    }
    opener_work(cu, &channel);
    (void)waitpid(child, &status, 0);
    print("owner", status);
}
