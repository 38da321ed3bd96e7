/* SPDX-License-Identifier: MIT */
/*
 * Tensors shared with other processes. A handle is libtarn's message (tarn/ipc.h); both processes
 * must use tarn as their allocator. The receiver gets a std::shared_ptr<void> whose last owner
 * closes the memory: two words, the pointer and the address of a control block of libstdc++,
 *
 *     { table of virtual functions; int use_count; int weak_count; }
 *
 * whose virtual functions are two destructors, dispose (the last use is gone), destroy (the last
 * reference to the block itself is gone) and get_deleter. The counting is libstdc++'s own code.
 */
#include "plug/pytorch/share.h"

#include "plug/pytorch/devices.h"
#include "plug/pytorch/failure.h"
#include "plug/pytorch/plug.h"
#include "plug/pytorch/symbol.h"
#include "tarn/ipc.h"

#include <assert.h>
#include <string.h>

enum {
    MESSAGE_MAX = 16384,
    STRING_INSIDE_MAX = 15 /* shorter strings are stored in the object itself, which could then not
                              be moved */
};

struct control;

typedef void (*control_function)(struct control *control);

struct control {
    const control_function *functions; /* behind the head of the table */
    int use_count;
    int weak_count;
    struct tarn_allocator *allocator;
    tarn_ptr ptr;
};

static void throw_if(enum tarn_status status, const struct tarn_error *error)
{
    if (status) {
        tn_torch_throw(error);
    }
}

static enum tarn_status export_block(const void *ptr, char *message, size_t *length_out,
                                     struct tarn_error *error)
{
    enum tarn_status st =
        tn_torch_fail(error, TARN_ERR_INVALID_POINTER, "the pointer was not allocated by tarn");

    for (int i = 0; st == TARN_ERR_INVALID_POINTER && i < TARN_TORCH_DEVICES_MAX; i++) {
        struct tarn_allocator *const allocator = tarn_torch_find_allocator(i);

        if (allocator) {
            st = tarn_ipc_export(allocator, (tarn_ptr)(uintptr_t)ptr, message, MESSAGE_MAX,
                                 length_out, error);
        }
    }
    return st;
}

struct tn_torch_handle tn_torch_share(void *self, void *ptr)
{
    struct tn_torch_handle handle = {0};
    struct tarn_error error;
    char message[MESSAGE_MAX];
    size_t length = 0;

    (void)self;
    throw_if(export_block(ptr, message, &length, &error), &error);
    if (length <= STRING_INSIDE_MAX) {
        (void)tn_torch_fail(&error, TARN_ERR_INTERNAL,
                            "a message of tarn is shorter than expected");
        tn_torch_throw(&error);
    }
    tn_torch_string_init(handle.string, message, length);
    return handle;
}

static void control_forget(struct control *control)
{
    tn_torch_delete(control);
}

static void control_destruct(struct control *control)
{
    (void)control;
}

/* Called in a destructor, so it does not throw. */
static void control_dispose(struct control *control)
{
    struct tarn_error error;

    if (!tn_torch_is_over() && tarn_ipc_close(control->allocator, control->ptr, &error)) {
        tn_torch_note(&error);
    }
}

static void *control_get_deleter(struct control *control, const void *type)
{
    (void)control;
    (void)type;
    return NULL;
}

enum {
    CONTROL_HEAD = 2,
    CONTROL_FUNCTIONS = 5
};

/* As every such table it begins with the offset to the whole object and its type, here none. */
static const struct {
    ptrdiff_t offset;
    const void *type;
    control_function destruct;
    control_function delete_it;
    control_function dispose;
    control_function destroy;
    void *(*get_deleter)(struct control *control, const void *type);
} control_table = {0,
                   NULL,
                   control_destruct,
                   control_forget,
                   control_dispose,
                   control_forget,
                   control_get_deleter};

static_assert(sizeof control_table == (CONTROL_HEAD + CONTROL_FUNCTIONS) * sizeof(void *),
              "slots without gaps");

static int current_device(void)
{
    int (*get_device)(int *device_out) = NULL;
    struct tarn_error error;
    int device = -1;

    if (!tn_torch_function("cudaGetDevice", &get_device) || get_device(&device) != 0) {
        (void)tn_torch_fail(&error, TARN_ERR_DEVICE, "CUDA does not report the current device");
        tn_torch_throw(&error);
    }
    return device;
}

/* The text of a std::string: its first two words are its address and its length. */
struct string_view {
    const char *bytes;
    size_t length;
};

void *tn_torch_open_shared(void *result, void *self, const void *handle)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;
    struct string_view view;
    tarn_ptr ptr = 0;

    (void)self;
    memcpy(&view, handle, sizeof view);
    throw_if(tn_torch_allocator(current_device(), &allocator, &error), &error);
    struct control *const control = tn_torch_new(sizeof *control);
    const enum tarn_status st =
        tarn_ipc_open(allocator, view.bytes, view.length, &ptr, NULL, &error);

    if (st) {
        tn_torch_delete(control);
        tn_torch_throw(&error);
    }
    *control = (struct control){.functions = (const control_function *)&control_table.destruct,
                                .use_count = 1,
                                .weak_count = 1,
                                .allocator = allocator,
                                .ptr = ptr};
    const uintptr_t words[2] = {(uintptr_t)ptr, (uintptr_t)control};

    memcpy(result, words, sizeof words);
    return result;
}
