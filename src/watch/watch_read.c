/* SPDX-License-Identifier: MIT */
#include "tarn/watch_read.h"

#include "base/clock.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/os_process.h"
#include "base/os_shared.h"
#include "watch/watch_device.h"
#include "watch/watch_record.h"

#include <errno.h>
#include <stdio.h>

#define PAGE_ENDING   ".page"
#define SOCKET_ENDING ".sock"

struct tarn_watch {
    int file;
    bool writable;
    void *map; /* of the head, for the system only: nothing here reads it. NULL: cannot ask */
    uint64_t process_start;
    struct tarn_watch_process process;
};

/* ---- pages ---- */

static bool page_read(void *context, uint64_t offset, void *bytes_out, size_t size)
{
    const struct tarn_watch *watch = context;

    return tn_os_shared_read(watch->file, offset, bytes_out, size);
}

/* Whether it is still the process that made the page. */
static bool process_runs(int64_t process, uint64_t start)
{
    uint64_t found;

    return tn_os_process_start(process, &found) && found == start;
}

bool tarn_watch_is_alive(const struct tarn_watch *watch)
{
    return process_runs(watch->process.process, watch->process_start);
}

static enum tarn_status page_failed(struct tarn_error *error, const char *path)
{
    if (errno == ENOENT) {
        return tn_fail(error, TARN_ERR_NOT_FOUND, "%s: %s", path, strerror(errno));
    }
    if (errno == EPERM || errno == EACCES || errno == ELOOP) {
        return tn_fail(error, TARN_ERR_UNSAFE,
                       "%s: it is somebody else's, is open to others, or is no plain file", path);
    }
    return tn_fail(error, TARN_ERR_IO, "%s: %s", path, strerror(errno));
}

/* Opens and checks the file of that process, which may have ended: *ended_out. */
static enum tarn_status page_open(struct tarn_watch *watch, const char *path, int64_t process,
                                  bool *ended_out, struct tarn_error *error)
{
    struct tn_page_head head;

    *ended_out = false;
    watch->file = tn_os_shared_open(path, &watch->writable);
    if (watch->file < 0) {
        return page_failed(error, path);
    }
    if (!tn_os_shared_read(watch->file, 0, &head, sizeof head)) {
        return tn_fail(error, TARN_ERR_FORMAT, "%s: this is no page of counters", path);
    }
    const enum tarn_status st = tn_watch_head_decode(&head, &watch->process, error);

    if (st) {
        return st;
    }
    if (watch->process.process != process) {
        return tn_fail(error, TARN_ERR_FORMAT, "%s: the page says that it is of process %lld", path,
                       (long long)watch->process.process);
    }
    watch->process_start = head.process_start;
    *ended_out = !process_runs(process, head.process_start);
    return TARN_OK;
}

static void page_close(struct tarn_watch *watch)
{
    tn_os_shared_unmap(watch->map, TN_PAGE_HEAD_SIZE);
    tn_os_descriptor_close(watch->file);
}

static enum tarn_status folder_find(const char *runtime, char path_out[TN_FOLDER_PATH_MAX],
                                    struct tarn_error *error)
{
    return tn_os_folder_private(runtime, "tarn", false, path_out) ? TARN_OK
                                                                  : page_failed(error, path_out);
}

/* A path in a folder whose own length is bounded. */
struct page_path {
    char text[TN_FOLDER_PATH_MAX + 32];
};

static struct page_path page_path_of(const char *folder, int64_t process)
{
    struct page_path path;

    (void)snprintf(path.text, sizeof path.text, "%s/%lld" PAGE_ENDING, folder, (long long)process);
    return path;
}

/* ---- opening ---- */

enum tarn_status tarn_watch_open(const char *runtime_folder, int64_t process,
                                 struct tarn_watch **watch_out, struct tarn_error *error)
{
    char folder[TN_FOLDER_PATH_MAX];
    bool ended = false;
    enum tarn_status st = folder_find(runtime_folder, folder, error);

    if (st) {
        return st == TARN_ERR_NOT_FOUND
                   ? tn_fail(error, st, "process %lld publishes nothing", (long long)process)
                   : st;
    }
    struct tarn_watch *watch = tn_host_alloc_zero(sizeof *watch);

    if (!watch) {
        return tn_fail_memory(error);
    }
    watch->file = -1;
    const struct page_path path = page_path_of(folder, process);

    st = page_open(watch, path.text, process, &ended, error);
    if (st == TARN_ERR_NOT_FOUND) {
        st = tn_fail(error, st, "process %lld publishes nothing", (long long)process);
    } else if (st == TARN_OK && ended) {
        st = tn_fail(error, TARN_ERR_NOT_FOUND, "process %lld has ended", (long long)process);
    }
    if (st) {
        tarn_watch_close(watch);
        return st;
    }
    watch->map = watch->writable ? tn_os_shared_map(watch->file, TN_PAGE_HEAD_SIZE) : NULL;
    *watch_out = watch;
    return TARN_OK;
}

void tarn_watch_close(struct tarn_watch *watch)
{
    if (watch) {
        page_close(watch);
        tn_host_free(watch, sizeof *watch);
    }
}

void tarn_watch_get_process(const struct tarn_watch *watch, struct tarn_watch_process *process_out)
{
    const uint32_t asked = process_out->struct_size;

    memcpy(process_out, &watch->process,
           asked < sizeof watch->process ? asked : sizeof watch->process);
    process_out->struct_size = asked;
}

/* ---- listing ---- */

struct listing {
    const char *folder;
    bool (*visit)(void *context, const struct tarn_watch_process *process);
    void (*refuse)(void *context, int64_t process, const struct tarn_error *reason); /* or NULL */
    void *context;
};

/* The process of a file's name, "123.page"; 0: it is none. */
static int64_t name_process(const char *name, const char *ending)
{
    int64_t process = 0;

    while (*name >= '0' && *name <= '9' && process < INT32_MAX / 10) {
        process = process * 10 + (*name++ - '0');
    }
    return strcmp(name, ending) == 0 ? process : 0;
}

/* A process makes its page before its socket and removes it after that: a socket without a page is
 * what somebody left who was killed. */
static void socket_visit(const struct listing *listing, const char *name)
{
    const int64_t process = name_process(name, SOCKET_ENDING);
    char path[TN_FOLDER_PATH_MAX + 32];

    if (process != 0 && !tn_os_shared_exists(page_path_of(listing->folder, process).text)) {
        (void)snprintf(path, sizeof path, "%s/%s", listing->folder, name);
        tn_os_shared_remove(path);
    }
}

static bool socket_list(void *context, const char *name)
{
    socket_visit(context, name);
    return true;
}

/* What has been removed meanwhile, or left behind by a process that has ended, is not missed. */
static void listing_refuse(const struct listing *listing, int64_t process,
                           const struct tarn_error *reason)
{
    uint64_t start;

    if (listing->refuse && reason->status != TARN_ERR_NOT_FOUND &&
        tn_os_process_start(process, &start)) {
        listing->refuse(listing->context, process, reason);
    }
}

static bool listing_visit(void *context, const char *name)
{
    const struct listing *listing = context;
    const int64_t process = name_process(name, PAGE_ENDING);
    struct tarn_watch watch = {.file = -1};
    const struct page_path path = page_path_of(listing->folder, process);
    struct tarn_error reason;
    bool ended = false;
    bool goes_on = true;

    if (process == 0) {
        return true;
    }
    if (page_open(&watch, path.text, process, &ended, &reason)) {
        listing_refuse(listing, process, &reason);
    } else if (ended) {
        tn_os_shared_remove_same(watch.file, path.text);
    } else {
        goes_on = listing->visit(listing->context, &watch.process);
    }
    page_close(&watch);
    return goes_on;
}

enum tarn_status tarn_watch_list(const char *runtime_folder,
                                 bool (*visit)(void *context,
                                               const struct tarn_watch_process *process),
                                 void *context, struct tarn_error *error)
{
    return tarn_watch_list_all(runtime_folder, visit, NULL, context, error);
}

enum tarn_status
tarn_watch_list_all(const char *runtime_folder,
                    bool (*visit)(void *context, const struct tarn_watch_process *process),
                    void (*refuse)(void *context, int64_t process, const struct tarn_error *reason),
                    void *context, struct tarn_error *error)
{
    char folder[TN_FOLDER_PATH_MAX];
    struct listing listing = {
        .folder = folder, .visit = visit, .refuse = refuse, .context = context};
    const enum tarn_status st = folder_find(runtime_folder, folder, error);

    if (st) {
        return st == TARN_ERR_NOT_FOUND ? TARN_OK : st;
    }
    return tn_os_folder_list(folder, listing_visit, &listing) &&
                   tn_os_folder_list(folder, socket_list, &listing)
               ? TARN_OK
               : page_failed(error, folder);
}

/* ---- reading ---- */

/* Adds 1 to `asked`. Another reader may do so at the same time, and one of both get lost: then one
 * answer serves both. */
static bool ask(struct tarn_watch *watch, uint32_t *asked_out)
{
    const uint64_t at = offsetof(struct tn_page_head, asked);

    if (!watch->map || !tn_os_shared_read(watch->file, at, asked_out, sizeof *asked_out)) {
        return false;
    }
    (*asked_out)++;
    if (!tn_os_shared_write(watch->file, at, asked_out, sizeof *asked_out)) {
        return false;
    }
    tn_os_shared_wake((const _Atomic uint32_t *)watch->map + at / sizeof(uint32_t));
    return true;
}

bool tarn_watch_ask(struct tarn_watch *watch, uint32_t timeout_ms)
{
    const uint64_t at = offsetof(struct tn_page_head, answered);
    const uint64_t end = tn_clock_now_ns() + (uint64_t)timeout_ms * 1000000u;
    uint32_t asked;
    uint32_t answered;

    if (!ask(watch, &asked)) {
        return false;
    }
    for (;;) {
        if (!tn_os_shared_read(watch->file, at, &answered, sizeof answered)) {
            return false;
        }
        if ((int32_t)(answered - asked) >= 0) {
            return true;
        }
        const uint64_t now = tn_clock_now_ns();

        if (now >= end) {
            return false;
        }
        tn_os_shared_wait((const _Atomic uint32_t *)watch->map + at / sizeof(uint32_t), answered,
                          end - now);
    }
}

/* The address is the process's word, and an address that NVML does not know is refused by it. */
static void device_renew(struct tarn_watch *watch, uint32_t index, struct tarn_watch_record *record)
{
    const size_t at = offsetof(struct tn_page_head, bus_ids) + (size_t)index * TN_PAGE_BUS_ID_MAX;
    char bus_id[TN_PAGE_BUS_ID_MAX];

    if (!record->closed && tn_os_shared_read(watch->file, at, bus_id, sizeof bus_id) && bus_id[0]) {
        bus_id[sizeof bus_id - 1] = '\0';
        tn_watch_device_renew(record, bus_id);
    }
}

enum tarn_status tarn_watch_read(struct tarn_watch *watch, uint32_t index,
                                 struct tarn_watch_record *record_out, struct tarn_error *error)
{
    const uint32_t asked = record_out->struct_size;
    struct tarn_watch_record record;

    if (index >= TARN_WATCH_ALLOCATORS) {
        return tn_fail(error, TARN_ERR_NOT_FOUND, "the process has no allocator %u", index);
    }
    const enum tarn_status st = tn_watch_record_read(page_read, watch, index, &record, error);

    if (st == TARN_OK) {
        device_renew(watch, index, &record);
        memcpy(record_out, &record, asked < sizeof record ? asked : sizeof record);
        record_out->struct_size = asked;
    }
    return st;
}
