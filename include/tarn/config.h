/* SPDX-License-Identifier: MIT */
/*
 * Allocator settings, those of PyTorch's PYTORCH_CUDA_ALLOC_CONF. A settings string is parsed into
 * this plain struct; the allocator keeps a copy. Sizes are bytes. Grammar, bounds and the options
 * that an update resets are those of PyTorch 2.11 (c10/core/AllocatorConfig,
 * c10/cuda/CUDAAllocatorConfig), except that separators are mandatory and an invalid string changes
 * nothing. `rules` is an option of tarn alone.
 *
 *   settings := [option {"," option} [","]]      option := name ":" value
 *   value    := word | "[" [pair {"," pair} [","]] "]"      pair := (MiB | ">") ":" word
 *
 * Blanks are ignored, even inside words. A number may be followed by anything ("40MB" is 40). When
 * an option is given twice, the last one wins.
 *
 * These functions allocate nothing and keep no state: any thread may call them on its own structs.
 */
#ifndef TARN_CONFIG_H
#define TARN_CONFIG_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_SIZE_UNLIMITED UINT64_MAX

/* Intervals of roundup_power2_divisions: below 2 MiB, [2, 4) MiB, ..., 32 GiB and above. */
enum {
    TARN_ROUNDUP_INTERVALS = 16
};

enum tarn_backend {
    TARN_BACKEND_NATIVE = 0, /* the caching allocator */
    TARN_BACKEND_ASYNC = 1   /* cudaMallocAsync */
};

/* How the caching allocator uses its pages. */
enum tarn_policy {
    TARN_POLICY_EXACT = 0,  /* PyTorch's decisions */
    TARN_POLICY_COMPACT = 1 /* free pages move to where they are needed */
};

/* Which version of PyTorch the caching allocator decides like. docs/differences.md lists what
 * differs. */
enum tarn_rules_version {
    TARN_RULES_2_11 = 0,
    TARN_RULES_2_14 = 1 /* those that 2.13 brought */
};

/* Whether other processes of the user can watch the allocator (tarn/watch.h). */
enum tarn_watch_mode {
    TARN_WATCH_OFF = 0,
    TARN_WATCH_PAGE = 1,   /* its counters, in shared memory */
    TARN_WATCH_CONTROL = 2 /* and it takes requests (tarn/watch_control.h) */
};

enum {
    TARN_WATCH_FOLDER_MAX = 160, /* bytes of a path with its NUL */
    TARN_CONFIG_TEXT_MAX =
        1024, /* bytes of a settings string with its NUL; longer ones are rejected */
    TARN_CONFIG_VALUE_MAX = 320 /* bytes of one option's value with its NUL */
};

struct tarn_config {
    uint32_t struct_size;            /* set by tarn_config_init and the functions that parse */
    uint64_t max_split_size;         /* blocks of at least this size are not split;
                                        TARN_SIZE_UNLIMITED = no limit */
    uint64_t max_non_split_rounding; /* how much larger than the request an unsplit block may be */
    uint64_t large_segment_size;     /* segment for requests above 1 and below 10 MiB */
    double garbage_collection_threshold;                       /* fraction of the limit, 0 = off */
    uint32_t roundup_power2_divisions[TARN_ROUNDUP_INTERVALS]; /* 0 and 1 = off */
    bool expandable_segments;
    bool release_lock_on_device_alloc; /* release_lock_on_cudamalloc */
    bool throw_on_device_oom;          /* throw_on_cudamalloc_oom: reject requests beyond the memory
                                          fraction without a device call */
    bool graph_capture_record_stream_reuse; /* reuse blocks of several streams within a capture */
    bool no_caching;            /* PYTORCH_NO_CUDA_MEMORY_CACHING; set by the environment only */
    bool memory_fraction_given; /* memory_fraction was set */
    double memory_fraction;     /* per_process_memory_fraction of device memory; 1 = all */
    enum tarn_backend backend;  /* PyTorch selects it at load time; whoever applies an update must
                                   reject a change */
    bool pinned_use_host_register; /* the pinned_ fields are settings of pinned host memory */
    bool pinned_use_background_threads;
    bool pinned_free_catch_all;
    uint32_t pinned_num_register_threads;
    uint64_t pinned_reserve_segment_size; /* 0 = none */
    char text[TARN_CONFIG_TEXT_MAX];      /* the last settings string, "" before the first */
    enum tarn_policy policy;              /* decided when the allocator is made, as `backend` */
    enum tarn_rules_version rules;
    uint64_t max_cached; /* max_cached_mb, policy:compact: bytes that may stay reserved beyond what
                            is active; TARN_SIZE_UNLIMITED = no limit */
    enum tarn_watch_mode watch;               /* TARN_WATCH; set by the environment only */
    char watch_folder[TARN_WATCH_FOLDER_MAX]; /* XDG_RUNTIME_DIR, if that is set and it is watched;
                                                 set by the environment only */
    uint64_t pinned_max_round_threshold;      /* bytes; larger requests are not rounded up */
    uint64_t pinned_max_cached_size; /* bytes; larger requests are not rounded up and not cached
                                            when freed; TARN_SIZE_UNLIMITED = no limit, of both */
};

/* The functions ending in _sized know how large the caller's struct is and write no more than that:
 * a program keeps working with a library whose struct has grown. Programs in C and C++ call the
 * inline functions after each, which pass the size of their own header's struct; bindings of other
 * languages pass theirs. TARN_ERR_INVALID_ARGUMENT for a size below that of struct_size, 0
 * included; nothing is written then. */

/* The defaults: those of PyTorch. */
TARN_API enum tarn_status tarn_config_init_sized(struct tarn_config *config_out, size_t size);

static inline void tarn_config_init(struct tarn_config *config_out)
{
    (void)tarn_config_init_sized(config_out, sizeof *config_out);
}

/* Parses a settings string over the defaults; NULL gives the defaults. On failure *config_out is
 * untouched, the status is TARN_ERR_CONFIG, and the error names the option, the allowed values and
 * the position (also in error->offset). */
TARN_API enum tarn_status tarn_config_parse_sized(const char *text, struct tarn_config *config_out,
                                                  size_t size,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

TARN_MUST_CHECK static inline enum tarn_status
tarn_config_parse(const char *text, struct tarn_config *config_out, struct tarn_error *error)
{
    return tarn_config_parse_sized(text, config_out, sizeof *config_out, error);
}

/* Parses a settings string as an update of existing settings: max_split_size_mb,
 * max_non_split_rounding_mb, garbage_collection_threshold and roundup_power2_divisions are first
 * reset to their defaults, all other options keep their values unless named. NULL only resets, and
 * keeps `text`. The struct must have been initialised. On failure it is untouched. */
TARN_API enum tarn_status tarn_config_update(const char *text, struct tarn_config *config_in_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* Settings from the environment over the defaults. The first of TARN_ALLOC_CONF,
 * PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF that is set is used, and an error names it; if
 * none is set, the defaults apply. no_caching is true when PYTORCH_NO_CUDA_MEMORY_CACHING is set,
 * whatever its value. TARN_WATCH is 0, 1 or control. No other thread may change the environment
 * meanwhile. */
TARN_API enum tarn_status tarn_config_from_env_sized(struct tarn_config *config_out, size_t size,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

TARN_MUST_CHECK static inline enum tarn_status tarn_config_from_env(struct tarn_config *config_out,
                                                                    struct tarn_error *error)
{
    return tarn_config_from_env_sized(config_out, sizeof *config_out, error);
}

/* Writes a short settings string that tarn_config_parse turns into these settings (except `text`
 * and what only the environment sets); "" for the defaults. TARN_CONFIG_TEXT_MAX bytes always
 * suffice. Fails with TARN_ERR_LIMIT when `size` is too small and with TARN_ERR_INVALID_ARGUMENT
 * when a settings string cannot express a field's value; the buffer then holds "" if it has any
 * room. */
TARN_API enum tarn_status tarn_config_format(const struct tarn_config *config, char *buffer,
                                             size_t size, struct tarn_error *error) TARN_MUST_CHECK;

enum tarn_config_kind {
    TARN_CONFIG_BOOL,      /* True or False */
    TARN_CONFIG_MIB,       /* whole MiB */
    TARN_CONFIG_COUNT,     /* power of two */
    TARN_CONFIG_FRACTION,  /* a number from 0 to 1 */
    TARN_CONFIG_DIVISIONS, /* a power of two, or a list by size */
    TARN_CONFIG_BACKEND,   /* native or cudaMallocAsync */
    TARN_CONFIG_POLICY,    /* exact or compact */
    TARN_CONFIG_RULES      /* 2.11 or 2.14 */
};

/* One option. Static storage. */
struct tarn_config_option {
    const char *name;
    const char *alias; /* another accepted name, or NULL */
    enum tarn_config_kind kind;
    bool resets;              /* an update that does not name it resets it to the default */
    const char *default_text; /* "unlimited" has no syntax */
    const char *range;        /* the allowed values, as a phrase */
    const char *help;         /* one line, lower case, no full stop */
    const char *since; /* the earliest of PyTorch 2.4, 2.11 and 2.12 that has it, or "tarn" */
};

/* The option at an index, NULL past the last. */
TARN_API const struct tarn_config_option *tarn_config_get_option(size_t index);

/* The value of one option. */
struct tarn_config_value {
    char text[TARN_CONFIG_VALUE_MAX]; /* in settings syntax, or "unlimited" or "N bytes" */
    bool is_default;
    bool has_spelling; /* false: a settings string cannot express the value */
};

/* Reads option `index` of these settings. TARN_ERR_NOT_FOUND past the last option. */
TARN_API enum tarn_status
tarn_config_option_value(const struct tarn_config *config, size_t index,
                         struct tarn_config_value *value_out) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
