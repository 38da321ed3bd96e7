/* SPDX-License-Identifier: MIT */
/*
 * ipc [DEVICE [SETTINGS]]: two processes that share memory. The first allocates it and sends a
 * message through a pipe; the second opens it, reads the first one's data and writes an answer into
 * the same memory. CUDA does not survive a fork: each process opens the device itself.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <tarn/copy.h>
#include <tarn/ipc.h>

#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIZE = 24 << 20
};

static const char question[] = "is anybody there?";
static const char answer[] = "yes, and no copy was made";

static struct tarn_allocator *open_device(int argc, char **argv)
{
    struct tarn_allocator *allocator;
    struct tarn_error error;

    CHECK(tarn_allocator_create_on(argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL, &allocator,
                                   &error));
    return allocator;
}

static void second_process(struct tarn_allocator *allocator, int pipe)
{
    unsigned char message[TARN_IPC_MESSAGE_SIZE];
    char text[sizeof question] = "";
    struct tarn_error error;
    uint64_t size;
    tarn_ptr ptr;
    const ssize_t length = read(pipe, message, sizeof message);

    EXPECT(length > 0);
    CHECK(tarn_ipc_open(allocator, message, (size_t)length, &ptr, &size, &error));
    EXPECT(size >= SIZE);
    CHECK(tarn_copy_to_host(allocator, text, ptr, sizeof text, 0, &error));
    EXPECT(strcmp(text, question) == 0);
    CHECK(tarn_copy_from_host(allocator, ptr, answer, sizeof answer, 0, &error));
    CHECK(tarn_ipc_close(allocator, ptr, &error));
}

static void first_process(struct tarn_allocator *allocator, int pipe, pid_t second)
{
    unsigned char message[TARN_IPC_MESSAGE_SIZE];
    char text[sizeof answer] = "";
    struct tarn_error error;
    size_t length;
    tarn_ptr ptr;
    int status;

    CHECK(tarn_allocator_alloc(allocator, SIZE, 0, &ptr, &error));
    CHECK(tarn_copy_from_host(allocator, ptr, question, sizeof question, 0, &error));
    CHECK(tarn_ipc_export(allocator, ptr, message, sizeof message, &length, &error));
    EXPECT(write(pipe, message, length) == (ssize_t)length);

    /* The memory must exist until the other process is done. */
    EXPECT(waitpid(second, &status, 0) == second && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(tarn_copy_to_host(allocator, text, ptr, sizeof text, 0, &error));
    EXPECT(strcmp(text, answer) == 0);
    (void)printf("%s %s\n", question, text);
    CHECK(tarn_allocator_free(allocator, ptr, &error));
}

int main(int argc, char **argv)
{
    int ends[2];

    EXPECT(pipe(ends) == 0);
    const pid_t second = fork();

    EXPECT(second >= 0);
    (void)close(ends[second == 0 ? 1 : 0]);
    if (second > 0) { /* pages of expandable segments need the right to trace the process */
        (void)prctl(PR_SET_PTRACER, second, 0, 0, 0);
    }
    struct tarn_allocator *allocator = open_device(argc, argv);

    if (second == 0) {
        second_process(allocator, ends[0]);
    } else {
        first_process(allocator, ends[1], second);
    }
    tarn_allocator_destroy(allocator);
    return 0;
}
