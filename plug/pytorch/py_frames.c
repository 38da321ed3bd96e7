/* SPDX-License-Identifier: MIT */
/*
 * A frame is a code object and the offset of an instruction in it. Stacks are kept as a tree: a
 * node is a frame and the number of its caller's node, so that a stack is the number of its
 * innermost node, and equal callers are stored once. A node lives while stacks or callees refer to
 * it, and holds a reference to its code object for as long, so that the object's address is its
 * identity. Names, files and lines are read from the code object when a snapshot is taken.
 *
 * Frames may be read only with the interpreter's lock (the GIL). Torch releases it before most of
 * its work, so a Python thread takes it again for the walk, as torch's own recorder does: before
 * any lock of libtarn. A thread unknown to Python has no frames and takes no lock. References are
 * dropped under locks of the allocator and on threads of any kind; dead nodes wait in a list until
 * a walk, which has the GIL, releases their code objects.
 *
 * `lock` guards the tree. Of the interpreter only Py_IncRef, which just counts, is called under it.
 * Releasing a code object may run a destructor, which may free tensors and re-enter this file: it
 * is done without `lock`, and with nothing half done.
 *
 * All memory is in one static array, whose pages are committed on first use.
 */
#include "plug/pytorch/py_frames.h"

#include "plug/pytorch/locks.h"
#include "plug/pytorch/symbol.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* ---- the interpreter ---- */

typedef void object; /* PyObject, of any kind */

static struct {
    object *(*own_state)(void);                         /* of this thread; NULL = not Python's */
    object *(*current_state)(void);                     /* of the thread that has the lock */
    int (*ensure)(void);                                /* takes the lock */
    void (*release)(int state);                         /* releases it */
    object *(*innermost)(object *state);                /* a new reference, as the next two */
    object *(*caller)(object *frame);                   /* NULL = none */
    object *(*code)(object *frame);                     /* never NULL */
    int (*instruction)(object *frame);                  /* from Python 3.11; else NULL */
    int (*frame_line)(object *frame);                   /* where `instruction` is NULL */
    int (*line)(object *code, int instruction);         /* -1 = unknown */
    object *(*attribute)(object *of, const char *name); /* a new reference; NULL and an error */
    const char *(*text)(object *string);                /* borrowed; NULL and an error */
    void (*clear_error)(void);
    void (*incref)(object *counted);
    void (*decref)(object *counted);
} py;

static atomic_bool py_usable;
static pthread_once_t py_once = PTHREAD_ONCE_INIT;
static _Thread_local unsigned waits_forbidden;

static void find_python(void)
{
    bool all = tn_torch_function("PyGILState_GetThisThreadState", &py.own_state);

    all = (tn_torch_function("PyThreadState_GetUnchecked", &py.current_state) ||
           tn_torch_function("_PyThreadState_UncheckedGet", &py.current_state)) &&
          all;
    all = tn_torch_function("PyGILState_Ensure", &py.ensure) && all;
    all = tn_torch_function("PyGILState_Release", &py.release) && all;
    all = tn_torch_function("PyThreadState_GetFrame", &py.innermost) && all;
    all = tn_torch_function("PyFrame_GetBack", &py.caller) && all;
    all = tn_torch_function("PyFrame_GetCode", &py.code) && all;
    all = (tn_torch_function("PyFrame_GetLasti", &py.instruction) ||
           tn_torch_function("PyFrame_GetLineNumber", &py.frame_line)) &&
          all;
    all = tn_torch_function("PyCode_Addr2Line", &py.line) && all;
    all = tn_torch_function("PyObject_GetAttrString", &py.attribute) && all;
    all = tn_torch_function("PyUnicode_AsUTF8", &py.text) && all;
    all = tn_torch_function("PyErr_Clear", &py.clear_error) && all;
    all = tn_torch_function("Py_IncRef", &py.incref) && all;
    all = tn_torch_function("Py_DecRef", &py.decref) && all;
    atomic_store_explicit(&py_usable, all, memory_order_release);
}

bool tn_py_open(void)
{
    (void)pthread_once(&py_once, find_python);
    return atomic_load_explicit(&py_usable, memory_order_acquire);
}

void tn_py_shutdown(void)
{
    atomic_store_explicit(&py_usable, false, memory_order_release);
}

void tn_py_forbid_waiting(void)
{
    waits_forbidden++;
}

void tn_py_allow_waiting(void)
{
    waits_forbidden--;
}

int tn_py_enter(void)
{
    return tn_py_open() ? py.ensure() : TN_PY_NOT_ENTERED;
}

void tn_py_leave(int entered)
{
    if (entered != TN_PY_NOT_ENTERED) {
        py.release(entered);
    }
}

/* ---- the tree ---- */

struct node {
    object *code;
    uint32_t caller;     /* its node; 0 = none */
    uint32_t next;       /* in its bucket, among the dead, or among the unused */
    int32_t place;       /* offset of the instruction; where those are unknown, -1 - line */
    uint32_t bucket;     /* to leave it */
    uint64_t references; /* of stacks and callees */
};

/* Node 0 is none. All guarded by lock. */
static pthread_mutex_t *const lock = &tn_torch_locks[TN_TORCH_LOCK_PY_FRAMES];
static struct node nodes[TN_PY_FRAMES_MAX + 1];
static uint32_t buckets[TN_PY_BUCKETS];
static uint32_t nodes_begun = 1; /* those from here on were never used */
static uint32_t unused;          /* freed */
static uint32_t dead;            /* their code objects wait to be released */
static uint64_t nodes_used;      /* the dead included */
static uint64_t nodes_limit = TN_PY_FRAMES_MAX;
static uint64_t stacks_dropped;
static atomic_bool some_are_dead;

/* A frame of the walk: `code` is a reference of the walk's own. */
struct step {
    object *code;
    int32_t place;
};

static uint32_t bucket_of(const struct step *step, uint32_t caller)
{
    uint64_t hash = (uint64_t)(uintptr_t)step->code;

    hash = (hash ^ (uint64_t)(uint32_t)step->place << 32 ^ caller) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 40) % TN_PY_BUCKETS;
}

/* Under the lock. */
static uint32_t node_take(void)
{
    uint32_t number = unused;

    if (nodes_used >= nodes_limit) {
        return 0;
    }
    if (number) {
        unused = nodes[number].next;
    } else {
        number = nodes_begun++;
    }
    nodes_used++;
    return number;
}

/* The node of that frame, made if need be; 0 when there is no room. Adds no reference to it.
 * Under the lock. */
static uint32_t node_get(const struct step *step, uint32_t caller)
{
    const uint32_t bucket = bucket_of(step, caller);
    uint32_t number = buckets[bucket];

    while (number && (nodes[number].code != step->code || nodes[number].place != step->place ||
                      nodes[number].caller != caller)) {
        number = nodes[number].next;
    }
    if (number) {
        return number;
    }
    number = node_take();
    if (number) {
        nodes[number] = (struct node){.code = step->code,
                                      .caller = caller,
                                      .next = buckets[bucket],
                                      .place = step->place,
                                      .bucket = bucket};
        buckets[bucket] = number;
        nodes[caller].references++;
        py.incref(step->code);
    }
    return number;
}

static void node_leave_bucket(uint32_t number)
{
    uint32_t *link = &buckets[nodes[number].bucket];

    while (*link != number) {
        link = &nodes[*link].next;
    }
    *link = nodes[number].next;
}

/* Removes unreferenced nodes, from here outwards. Under the lock. */
static void nodes_bury(uint32_t number)
{
    while (number && nodes[number].references == 0) {
        const uint32_t caller = nodes[number].caller;

        node_leave_bucket(number);
        nodes[number].next = dead;
        dead = number;
        atomic_store_explicit(&some_are_dead, true, memory_order_relaxed);
        nodes[caller].references--;
        number = caller;
    }
}

/* The number of a stack with one more reference, 0 when it found no room. */
static uint32_t stack_get(const struct step *steps, size_t count)
{
    uint32_t number = 0;
    bool fits = true;

    (void)pthread_mutex_lock(lock);
    for (size_t i = count; i > 0 && fits; i--) {
        const uint32_t inner = node_get(&steps[i - 1], number);

        fits = inner != 0;
        number = fits ? inner : number;
    }
    if (fits) {
        nodes[number].references++;
    } else {
        stacks_dropped++;
        nodes_bury(number);
        number = 0;
    }
    (void)pthread_mutex_unlock(lock);
    return number;
}

/* Under the interpreter's lock. */
static void give_codes_back(void)
{
    (void)pthread_mutex_lock(lock);
    uint32_t number = dead;

    dead = 0;
    atomic_store_explicit(&some_are_dead, false, memory_order_relaxed);
    (void)pthread_mutex_unlock(lock);
    while (number) {
        const uint32_t next = nodes[number].next; /* no other thread can reach these now */

        py.decref(nodes[number].code);
        (void)pthread_mutex_lock(lock);
        nodes[number].next = unused;
        unused = number;
        nodes_used--;
        (void)pthread_mutex_unlock(lock);
        number = next;
    }
}

/* ---- for the history ---- */

static int32_t place_of(object *frame)
{
    if (!py.instruction) {
        return -1 - py.frame_line(frame);
    }
    const int offset = py.instruction(frame);

    return offset > 0 ? offset : 0; /* a frame that has not begun is at its first line */
}

/* The calling thread's frames, innermost first. */
static size_t walk(object *state, struct step *steps)
{
    object *frame = py.innermost(state);
    size_t count = 0;

    while (frame && count < TN_PY_DEPTH_MAX) {
        object *const outer = py.caller(frame);

        steps[count++] = (struct step){.code = py.code(frame), .place = place_of(frame)};
        py.decref(frame);
        frame = outer;
    }
    if (frame) {
        py.decref(frame);
    }
    return count;
}

/* With the interpreter's lock. */
static uint64_t capture_entered(object *state)
{
    struct step steps[TN_PY_DEPTH_MAX];
    const size_t count = walk(state, steps);
    const uint32_t number = count > 0 ? stack_get(steps, count) : 0;

    for (size_t i = 0; i < count; i++) {
        py.decref(steps[i].code); /* its frame has it as well */
    }
    if (atomic_load_explicit(&some_are_dead, memory_order_relaxed)) {
        give_codes_back();
    }
    return number;
}

static uint64_t frames_capture(void *context)
{
    (void)context;
    if (!atomic_load_explicit(&py_usable, memory_order_acquire)) {
        return 0;
    }
    object *const state = py.own_state();
    uint64_t number = 0;

    if (state && py.current_state() == state) {
        number = capture_entered(state);
    } else if (state && waits_forbidden == 0) {
        const int entered = py.ensure();

        number = capture_entered(state);
        py.release(entered);
    }
    return number;
}

static void frames_release(void *context, uint64_t stack)
{
    (void)context;
    (void)pthread_mutex_lock(lock);
    nodes[stack].references--;
    nodes_bury((uint32_t)stack);
    (void)pthread_mutex_unlock(lock);
}

/* An attribute that is a text; "??" for anything else. *kept_out is a reference to release. */
static const char *text_of(object *code, const char *name, object **kept_out)
{
    const char *text = NULL;

    *kept_out = py.attribute(code, name);
    if (*kept_out) {
        text = py.text(*kept_out);
    }
    if (!text) {
        py.clear_error();
    }
    return text ? text : "??";
}

static void show_frame(object *code, int32_t place, tarn_frame_visitor visit, void *context)
{
    const int line = place < 0 ? -1 - place : py.line(code, place);
    object *name = NULL;
    object *file = NULL;
    const struct tarn_stack_frame frame = {
        .name = text_of(code, "co_name", &name),
        .filename = text_of(code, "co_filename", &file),
        .line = line > 0 ? (uint64_t)line : 0,
    };

    visit(context, &frame);
    if (name) {
        py.decref(name);
    }
    if (file) {
        py.decref(file);
    }
}

/* The stack has a reference, so its nodes stay as they are. */
static void frames_describe(void *context, uint64_t stack, tarn_frame_visitor visit,
                            void *visit_context)
{
    const int entered = tn_py_enter();

    (void)context;
    for (uint64_t number = stack; entered != TN_PY_NOT_ENTERED && number;
         number = nodes[number].caller) {
        show_frame(nodes[number].code, nodes[number].place, visit, visit_context);
    }
    tn_py_leave(entered);
}

const struct tarn_host_frames tn_py_frames = {
    .capture = frames_capture, .release = frames_release, .describe = frames_describe};

void tn_py_set_limit(uint64_t frames)
{
    (void)pthread_mutex_lock(lock);
    nodes_limit = frames == 0 || frames > TN_PY_FRAMES_MAX ? TN_PY_FRAMES_MAX : frames;
    (void)pthread_mutex_unlock(lock);
}

struct tn_py_usage tn_py_usage(void)
{
    (void)pthread_mutex_lock(lock);
    const struct tn_py_usage usage = {.frames = nodes_used, .dropped = stacks_dropped};

    (void)pthread_mutex_unlock(lock);
    return usage;
}
