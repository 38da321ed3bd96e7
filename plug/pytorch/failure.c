/* SPDX-License-Identifier: MIT */
/*
 * A C++ exception thrown from C. The Itanium C++ ABI, which gcc and clang follow on Linux, says
 * how: __cxa_allocate_exception, construct the object, __cxa_throw with its type and its
 * destructor. The classes are torch's:
 *
 *     struct SourceLocation { const char *function, *file; uint32_t line; };
 *     class Error : public std::exception { Error(SourceLocation, std::string); ... };
 *     class OutOfMemoryError : public Error { using Error::Error; };
 *
 * OutOfMemoryError adds nothing to Error but its type, so an Error with the other's table of
 * virtual functions is one. A std::string parameter is passed by the address of a temporary, which
 * the caller destroys; SourceLocation is passed by value. The destructor is the first virtual
 * function.
 *
 * This file is compiled with -fexceptions, so that the exception passes through its frames.
 */
#include "plug/pytorch/failure.h"

#include "plug/pytorch/last_words.h"
#include "plug/pytorch/locks.h"
#include "plug/pytorch/plug.h"
#include "plug/pytorch/symbol.h"

#include <pthread.h>
#include <string.h>

#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

enum {
    /* c10::Error is 5 strings and a vector at most; the rest is spare space for later versions. */
    EXCEPTION_BYTES = 1024,
    STRING_BYTES = 32
};

struct source_location {
    const char *function;
    const char *file;
    uint32_t line;
};

typedef void (*destructor)(void *object);

/* The symbols needed to throw. Written under cxx_lock until all are found. */
static struct {
    void *(*allocate)(size_t size);
    void (*throw_it)(void *object, void *type, destructor destroy);
    void (*string_init)(void *string, const char *bytes, size_t size, const void *allocator);
    void (*string_fini)(void *string);
    void *(*new_it)(size_t size);
    void (*delete_it)(void *memory);
    void (*error_init)(void *error, struct source_location where, void *string);
    char *error_type;
    char *oom_type;
    char *oom_table;
    const char *missing;
} cxx;

static pthread_mutex_t *const cxx_lock = &tn_torch_locks[TN_TORCH_LOCK_CXX];
static bool cxx_is_complete;

static void find(const char *name, void *function_out)
{
    if (!tn_torch_function(name, function_out)) {
        cxx.missing = name;
    }
}

static void find_symbols(void)
{
    cxx.missing = NULL;
    find("_ZTIN3c1016OutOfMemoryErrorE", &cxx.oom_type);
    find("_ZTVN3c1016OutOfMemoryErrorE", &cxx.oom_table);
    find("_ZTIN3c105ErrorE", &cxx.error_type);
    find("_ZN3c105ErrorC1ENS_14SourceLocationE" STRING, &cxx.error_init);
    find("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1EPKcmRKS3_", &cxx.string_init);
    find("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEED1Ev", &cxx.string_fini);
    find("_Znwm", &cxx.new_it);
    find("_ZdlPv", &cxx.delete_it);
    find("__cxa_throw", &cxx.throw_it);
    find("__cxa_allocate_exception", &cxx.allocate);
}

const char *tarn_torch_missing_symbol(void)
{
    const char *missing = NULL;

    (void)pthread_mutex_lock(cxx_lock);
    if (!cxx_is_complete) {
        find_symbols();
        missing = cxx.missing;
        cxx_is_complete = missing == NULL;
    }
    (void)pthread_mutex_unlock(cxx_lock);
    return missing;
}

void tn_torch_string_init(void *string, const char *bytes, size_t size)
{
    const char allocator = 0; /* std::allocator has no state */

    cxx.string_init(string, bytes, size, &allocator);
}

void *tn_torch_new(size_t size)
{
    return cxx.new_it(size);
}

void tn_torch_delete(void *memory)
{
    cxx.delete_it(memory);
}

static pthread_mutex_t *const note_lock = &tn_torch_locks[TN_TORCH_LOCK_NOTE];
static struct tarn_error noted; /* guarded by note_lock; TARN_OK = nothing failed yet */

void tn_torch_note(const struct tarn_error *error)
{
    (void)pthread_mutex_lock(note_lock);
    noted = *error;
    (void)pthread_mutex_unlock(note_lock);
}

bool tarn_torch_last_error(struct tarn_error *error_out)
{
    bool any = false;

    (void)pthread_mutex_lock(note_lock);
    if (noted.status != TARN_OK) {
        *error_out = noted;
        any = true;
    }
    (void)pthread_mutex_unlock(note_lock);
    return any;
}

/* An Itanium table of virtual functions begins with two words that are not functions. */
static void **first_function(char *table)
{
    return (void **)(void *)(table + 2 * sizeof(void *));
}

static void error_construct(void *object, const char *text)
{
    const struct source_location where = {"tarn_torch_alloc", "libtarn_torch.so", 0};
    _Alignas(16) char string[STRING_BYTES];

    memset(object, 0, EXCEPTION_BYTES);
    tn_torch_string_init(string, text, strlen(text));
    cxx.error_init(object, where, string);
    cxx.string_fini(string);
}

void tn_torch_throw(const struct tarn_error *error)
{
    const bool is_oom = error->status == TARN_ERR_OUT_OF_MEMORY;
    destructor destroy;
    void **table;

    const char *const missing = tarn_torch_missing_symbol();

    tn_torch_note(error);
    if (missing) {
        tn_torch_last_words(error->text, missing);
    }
    void *const object = cxx.allocate(EXCEPTION_BYTES);

    error_construct(object, error->text);
    if (is_oom) {
        table = first_function(cxx.oom_table);
        memcpy(object, &table, sizeof(void *));
    }
    memcpy(&table, object, sizeof(void *));
    memcpy(&destroy, table, sizeof destroy);
    cxx.throw_it(object, is_oom ? cxx.oom_type : cxx.error_type, destroy);
    tn_torch_last_words(error->text, "__cxa_throw that does not return");
}
