/* SPDX-License-Identifier: MIT */
/*
 * The real driver behind the hooks: its functions, found without the hooks, and the way back from
 * the address of one of them to the function that stands in for it.
 *
 * A function is known by its address, whatever name, version and flags it was asked for with: so a
 * newer variant of a function, which has another address, is never mistaken for one of hooks.def.
 */
#ifndef RUN_DRIVER_H
#define RUN_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values of CUresult that matter here. */
enum {
    RUN_CU_SUCCESS = 0,
    RUN_CU_INVALID_VALUE = 1,
    RUN_CU_OUT_OF_MEMORY = 2,
    RUN_CU_NOT_INITIALIZED = 3,
    RUN_CU_NOT_SUPPORTED = 801
};

/* CU_POINTER_ATTRIBUTE_... */
enum {
    RUN_CU_RANGE_START = 11,
    RUN_CU_RANGE_SIZE = 12
};

/* The beginning of CUmemAllocationProp. */
struct run_cu_prop {
    int type;
    int handle_types;
    int location_type; /* 1: a device */
    int location_id;
};

/* CUipcMemHandle */
struct run_cu_ipc_handle {
    char bytes[64];
};

/* Members are NULL where the driver lacks the function. */
struct run_driver {
#define RUN_HOOK(exported, plain, since, flags, parameters) int(*exported) parameters;
#include "plug/preload/hooks.def"
#undef RUN_HOOK
    int (*cuCtxGetDevice)(int *device);
    int (*cuCtxGetCurrent)(void **context);
    int (*cuCtxSynchronize)(void);
    int (*cuCtxPushCurrent_v2)(void *context);
    int (*cuCtxPopCurrent_v2)(void **context);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuStreamIsCapturing)(uint64_t stream, int *status);
};

/* The driver; NULL as long as the program has not loaded it. Any thread. */
const struct run_driver *run_driver(void);

/* Asks the driver's cuGetProcAddress for the addresses of the hooks' functions, once: only when the
 * program asks it itself, so that nothing is called in the driver before the program does. */
void run_driver_ask(void);

/* What stands in for the driver's function at this address; NULL: nothing does. */
void *run_driver_hook(const void *function);

/* The same by the name that the library exports it under. *real_out, which may be NULL: the
 * driver's function, NULL while no driver is known. */
void *run_driver_hook_named(const char *exported, void **real_out);

/* Whether the name is that of a function of memory that neither hooks.def nor known.def has. */
bool run_driver_is_new(const char *name);

/* Whether cuGetProcAddress knows a function of hooks.def by that name: what it gives for it that is
 * none of those is a variant of another age. */
bool run_driver_is_variant(const char *name);

/* A function of the C library or its loader that other libraries may stand in for, such as this
 * one. NULL when it is not found. */
void *run_libc_find(const char *name);

/* dlsym, past the hook. */
void *run_real_dlsym(void *library, const char *name);

#endif
