/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the parts of torch's C++ libraries that the plug meets: its exceptions, the
 * interface of allocators and the pluggable one, with the names, parameters and order of virtual
 * functions of torch 2.11. Built as libc10_cuda.so, so that the plug finds it as it finds torch.
 *
 * The functions below are what torch's Python bindings do with them. Those that can fail return a
 * code and leave the text of the exception in a buffer of the calling thread.
 */
#ifndef TESTS_PLUG_STANDIN_H
#define TESTS_PLUG_STANDIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum standin_result {
    STANDIN_OK,
    STANDIN_OUT_OF_MEMORY, /* c10::OutOfMemoryError */
    STANDIN_ERROR,         /* c10::Error */
    STANDIN_OTHER          /* anything else was thrown */
};

/* Filters of begin_pool. */
enum standin_filter {
    STANDIN_ANY_STREAM,
    STANDIN_ONE_STREAM,   /* captures a stream, stored in the function itself */
    STANDIN_LARGE_FILTER, /* captures more than fits there */
    STANDIN_EMPTY_FILTER
};

const char *standin_text(void);

/* A pluggable allocator and its setters, by the names that Python has for them. */
void *standin_custom_allocator(void *alloc, void *free);
int standin_set(void *allocator, const char *setter, void *function);
int standin_change_current(void *allocator);
void standin_init(int device_count);
int standin_is_initialized(void);
void standin_forget(void); /* back to no allocator, for the next test */

/* The current allocator. */
int standin_alloc(size_t size, int device, void *stream, void **ptr_out);
int standin_free(void *ptr);
int standin_alloc_elsewhere(size_t size,
                            void **ptr_out); /* on a thread that Python does not know */
int standin_free_elsewhere(void *ptr);
int standin_empty_cache(uint64_t first, uint64_t second);
int standin_record_stream(void *ptr, void *stream);
int standin_base(void *ptr, void **base_out, size_t *size_out);
int standin_set_fraction(double fraction, int device);
int standin_get_fraction(int device, double *fraction_out);
int standin_cache_info(int device, size_t *largest_in_out);
int standin_reset_peak(int device);
int standin_reset_accumulated(int device);
int standin_begin_pool(int device, uint64_t first, uint64_t second, int filter, void *stream);
int standin_end_pool(int device, uint64_t first, uint64_t second);
int standin_release_pool(int device, uint64_t first, uint64_t second);
int standin_acquire_pool(int device, uint64_t first, uint64_t second, void *source);
int standin_pool_use_count(int device, uint64_t first, uint64_t second, int *count_out);
int standin_pool_use_on_oom(int device, uint64_t first, uint64_t second, int use);
int standin_pool_no_split(int device, uint64_t first, uint64_t second);
int standin_enable_peer(int device, int peer);
int standin_copy(int to_device, int from_device, int peer_access, int *kind_out);
int standin_share(void *ptr, char *handle_out, size_t capacity, size_t *length_out,
                  ptrdiff_t *offset_out);
int standin_open_shared(int device, const char *handle, size_t length, void **ptr_out);
void standin_close_shared(void); /* all of them */
int standin_record_history(int enabled);
int standin_is_history_enabled(int *enabled_out);
int standin_annotate(const char *name, const char *stage, const char *more); /* more: NULL = none */
int standin_push_compile_context(const char *text);
int standin_pop_compile_context(void);
int standin_set_user_metadata(const char *text);
int standin_refused(void); /* calls a method that nobody has taken over */

/* Copies of filters that live now: 0 when nothing leaks. */
int standin_live_filters(void);

/* Calls begin with an object that no libstdc++ made. */
int standin_begin_pool_raw(void *begin, int device, uint64_t first, uint64_t second,
                           const void *object);

#ifdef __cplusplus
}
#endif

#endif
