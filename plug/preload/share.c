/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* process_vm_readv */
#include "plug/preload/share.h"

#include "plug/preload/process.h"
#include "plug/preload/serve.h"
#include "tarn/ipc.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    MESSAGE_BYTES_MAX = 1 << 20 /* a quarter of a million pages */
};

/* What another process reads. */
struct note {
    uint64_t cookie; /* 0: the memory was freed */
    uint64_t length;
    unsigned char message[];
};

struct share {
    struct share *next;
    uint64_t base;
    struct note *note;
};

/* Contents of a handle. */
struct ticket {
    char magic[8];
    int64_t process;
    uint64_t note; /* its address there */
    uint64_t cookie;
    uint64_t length;
};

static_assert(sizeof(struct ticket) <= sizeof(struct run_cu_ipc_handle), "it fits a handle");

static const char ticket_magic[8] = {'t', 'a', 'r', 'n', 'r', 'u', 'n', '1'};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static struct share *shares;
static atomic_bool shared; /* the list was used */

static bool refuse(const char *function, const char *why)
{
    char format[400];

    (void)snprintf(format, sizeof format,
                   "tarn run: %%s fails for memory that tarn serves: %.250s; --policy observe "
                   "leaves it to the driver\n",
                   why);
    run_say_once(function, format);
    return false;
}

/* ---- sharing ---- */

/* Room for a message. */
static struct note *note_create(size_t length)
{
    struct note *note = calloc(1, sizeof *note + length);

    if (note && getrandom(&note->cookie, sizeof note->cookie, 0) != (ssize_t)sizeof note->cookie) {
        note->cookie = 0;
    }
    if (note) {
        note->cookie |= 1;
        note->length = length;
    }
    return note;
}

/* NULL when there can be none. */
static struct note *note_write(uint64_t base, struct tarn_error *error)
{
    size_t length = TARN_IPC_MESSAGE_SIZE;
    enum tarn_status st = TARN_ERR_LIMIT;
    struct note *note = NULL;

    while (st == TARN_ERR_LIMIT && length <= MESSAGE_BYTES_MAX) {
        free(note);
        note = note_create(length);
        st = note ? run_serve_export(base, note->message, length, &length, error)
                  : TARN_ERR_HOST_MEMORY;
    }
    if (st != TARN_OK) {
        free(note);
        return NULL;
    }
    note->length = length;
    return note;
}

static struct share *share_make(uint64_t base, struct tarn_error *error)
{
    struct share *share = malloc(sizeof *share);
    struct note *note = share ? note_write(base, error) : NULL;

    if (!note) {
        free(share);
        return NULL;
    }
    *share = (struct share){.next = shares, .base = base, .note = note};
    return share;
}

/* The lock is held. */
static struct share *share_get(uint64_t base, struct tarn_error *error)
{
    struct share *share = shares;

    while (share && share->base != base) {
        share = share->next;
    }
    if (!share) {
        share = share_make(base, error);
        shares = share ? share : shares;
    }
    return share;
}

bool run_share_export(uint64_t base, struct run_cu_ipc_handle *handle_out)
{
    struct ticket ticket = {.process = getpid()};
    struct tarn_error error = {.text = ""};

    if (!atomic_exchange(&shared, true)) {
        (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* fails where it is not needed */
    }
    (void)pthread_mutex_lock(&lock);
    const struct share *share = share_get(base, &error);

    if (share) {
        memcpy(ticket.magic, ticket_magic, sizeof ticket.magic);
        ticket.note = (uint64_t)(uintptr_t)share->note;
        ticket.cookie = share->note->cookie;
        ticket.length = share->note->length;
    }
    (void)pthread_mutex_unlock(&lock);
    if (!share) {
        return refuse("cuIpcGetMemHandle", error.text);
    }
    memset(handle_out, 0, sizeof *handle_out);
    memcpy(handle_out, &ticket, sizeof ticket);
    return true;
}

void run_share_end(uint64_t base)
{
    if (!atomic_load_explicit(&shared, memory_order_relaxed)) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    for (struct share **link = &shares; *link; link = &(*link)->next) {
        struct share *share = *link;

        if (share->base == base) {
            *link = share->next;
            *(volatile uint64_t *)&share->note->cookie = 0; /* another process may read it later */
            free(share->note);
            free(share);
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

void run_share_forked(void)
{
    (void)pthread_mutex_init(&lock, NULL);
    shares = NULL; /* the parent's */
    atomic_store(&shared, false);
}

/* ---- opening ---- */

bool run_share_made(const struct run_cu_ipc_handle *handle)
{
    return memcmp(handle, ticket_magic, sizeof ticket_magic) == 0;
}

/* Reads the note; the caller frees it. NULL if there is none, as after the memory was freed, which
 * the driver would refuse as well; *why_out stays NULL then. */
static struct note *note_read(const struct ticket *ticket, const char **why_out)
{
    const size_t size = sizeof(struct note) + (size_t)ticket->length;
    struct note *note = ticket->length <= MESSAGE_BYTES_MAX ? malloc(size) : NULL;
    const struct iovec here = {.iov_base = note, .iov_len = size};
    struct iovec there = {.iov_len = size};
    const uintptr_t address = (uintptr_t)ticket->note;

    memcpy(&there.iov_base, &address, sizeof address);
    const ssize_t length =
        note ? process_vm_readv((pid_t)ticket->process, &here, 1, &there, 1, 0) : -1;

    if (note && length == (ssize_t)size && note->cookie == ticket->cookie &&
        note->length == ticket->length) {
        return note;
    }
    if (length < 0 && (errno == EPERM || errno == ENOSYS)) {
        *why_out = "the system does not let this process read the memory of the one that shares "
                   "it, which needs the right to trace it (kernel.yama.ptrace_scope, the "
                   "capability SYS_PTRACE)";
    }
    free(note);
    return NULL;
}

bool run_share_open(int device, const struct run_cu_ipc_handle *handle, uint64_t *address_out)
{
    struct tarn_error error = {.text = ""};
    struct ticket ticket;
    const char *why = NULL;
    bool opened = false;

    memcpy(&ticket, handle, sizeof ticket);
    struct note *note = note_read(&ticket, &why);

    if (note) {
        opened = run_serve_open(device, note->message, (size_t)note->length, address_out, &error) ==
                 TARN_OK;
        why = error.text;
    }
    free(note);
    return opened || (why && refuse("cuIpcOpenMemHandle", why));
}
