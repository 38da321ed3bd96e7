/* SPDX-License-Identifier: MIT */
/*
 * Opcodes that ask Python to import or call something. They are refused with an error that names
 * it. A few names produce plain containers; those are recognized as whole patterns and evaluated
 * here:
 *   collections.OrderedDict, no arguments                      an empty dict
 *   collections.defaultdict, one of list and dict              an empty dict
 *   torch.jit._pickle.restore_type_tag, (x, type as a string)  x
 *   torch.jit._pickle.build_intlist and its like, (list)       the list
 */
#include "base/errinfo.h"
#include "snapshot/pickle.h"
#include "snapshot/pickle_op.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_SHOWN_MAX = 100,
    LINE_MAX_BYTES = 512
};

enum global {
    GLOBAL_ORDERED_DICT,
    GLOBAL_DEFAULT_DICT,
    GLOBAL_LIST,
    GLOBAL_DICT,
    GLOBAL_RESTORE_TYPE,
    GLOBAL_BUILD_LIST
};

static const struct {
    const char *module;
    const char *name;
    enum global global;
} known_globals[] = {
    {"collections", "OrderedDict", GLOBAL_ORDERED_DICT},
    {"collections", "defaultdict", GLOBAL_DEFAULT_DICT},
    {"builtins", "list", GLOBAL_LIST},
    {"builtins", "dict", GLOBAL_DICT},
    {"__builtin__", "list", GLOBAL_LIST},
    {"__builtin__", "dict", GLOBAL_DICT},
    {"torch.jit._pickle", "restore_type_tag", GLOBAL_RESTORE_TYPE},
    {"torch.jit._pickle", "build_intlist", GLOBAL_BUILD_LIST},
    {"torch.jit._pickle", "build_doublelist", GLOBAL_BUILD_LIST},
    {"torch.jit._pickle", "build_boollist", GLOBAL_BUILD_LIST},
};

/* A name for a message: short, without control characters. */
struct shown {
    char text[NAME_SHOWN_MAX + 1];
};

static struct shown name_show(struct tn_string name)
{
    struct shown shown;
    size_t length = name.length < NAME_SHOWN_MAX ? name.length : NAME_SHOWN_MAX;

    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)name.text[i];

        shown.text[i] = (char)(c < ' ' || c >= 0x7f || c == '`' ? '?' : c);
    }
    shown.text[length] = '\0';
    return shown;
}

static enum tarn_status unsafe(struct tn_pickle *pickle, const char *what)
{
    return tn_fail_at(
        pickle->error, TARN_ERR_UNSAFE, (int64_t)pickle->op_offset,
        "this file asks to %s at byte %llu. A snapshot is plain data, so the file was "
        "not made by PyTorch's snapshot functions and is refused",
        what, (unsigned long long)pickle->op_offset);
}

static enum tarn_status unsafe_import(struct tn_pickle *pickle, struct tn_string module,
                                      struct tn_string name)
{
    char what[2 * NAME_SHOWN_MAX + 32];

    (void)snprintf(what, sizeof what, "import `%s.%s`", name_show(module).text,
                   name_show(name).text);
    return unsafe(pickle, what);
}

static enum tarn_status import(struct tn_pickle *pickle, struct tn_string module,
                               struct tn_string name)
{
    for (size_t i = 0; i < sizeof known_globals / sizeof *known_globals; i++) {
        if (!pickle->limits.strict && tn_string_is(module, known_globals[i].module) &&
            tn_string_is(name, known_globals[i].name)) {
            return tn_pickle_push(
                pickle, tn_value_make(TN_VALUE_GLOBAL, pickle->op_offset, known_globals[i].global));
        }
    }
    return unsafe_import(pickle, module, name);
}

/* A line of text after the opcode, without its newline. It may be incomplete: the opcode alone is
 * reason to refuse the file. */
static void take_line(struct tn_pickle *pickle, char *line, struct tn_string *out)
{
    size_t length = 0;

    while (length < LINE_MAX_BYTES && tn_input_need(pickle->input, 1, NULL) == TARN_OK) {
        const char c = (char)*pickle->input->at++;

        if (c == '\n') {
            break;
        }
        line[length++] = c;
    }
    *out = (struct tn_string){line, length};
}

static enum tarn_status import_by_lines(struct tn_pickle *pickle, bool allowed)
{
    char module_line[LINE_MAX_BYTES];
    char name_line[LINE_MAX_BYTES];
    struct tn_string module;
    struct tn_string name;

    take_line(pickle, module_line, &module);
    take_line(pickle, name_line, &name);
    return allowed ? import(pickle, module, name) : unsafe_import(pickle, module, name);
}

static enum tarn_status import_from_stack(struct tn_pickle *pickle)
{
    if (pickle->depth - pickle->floor < 2) {
        return unsafe(pickle, "import something");
    }
    const struct tn_value module = pickle->stack[pickle->depth - 2];
    const struct tn_value name = pickle->stack[pickle->depth - 1];
    if (tn_value_kind(module) != TN_VALUE_STRING || tn_value_kind(name) != TN_VALUE_STRING) {
        return unsafe(pickle, "import something with a computed name");
    }
    pickle->depth -= 2;
    return import(pickle, tn_model_string(pickle->decoder->model, (uint32_t)module.as.number),
                  tn_model_string(pickle->decoder->model, (uint32_t)name.as.number));
}

static bool value_is_global(struct tn_value value, enum global global)
{
    return tn_value_kind(value) == TN_VALUE_GLOBAL && value.as.number == (uint64_t)global;
}

/* The value of a known call; false if the arguments do not match the pattern. */
static enum tarn_status evaluate(struct tn_pickle *pickle, enum global global,
                                 const struct tn_value_list *arguments, struct tn_value *out,
                                 bool *known_out)
{
    const struct tn_value *items = arguments->items;
    const size_t count = arguments->count;

    *known_out = true;
    if ((global == GLOBAL_ORDERED_DICT && count == 0) ||
        (global == GLOBAL_DEFAULT_DICT && count == 1 &&
         (value_is_global(items[0], GLOBAL_LIST) || value_is_global(items[0], GLOBAL_DICT)))) {
        return tn_decode_new(pickle->decoder, TN_OBJECT_EMPTY_DICT, pickle->op_offset, out);
    }
    if ((global == GLOBAL_RESTORE_TYPE && count == 2 &&
         tn_value_kind(items[1]) == TN_VALUE_STRING) ||
        (global == GLOBAL_BUILD_LIST && count == 1 &&
         tn_decode_is_list(pickle->decoder, items[0]))) {
        *out = items[0];
        return TARN_OK;
    }
    *known_out = false;
    return TARN_OK;
}

static enum tarn_status reduce(struct tn_pickle *pickle)
{
    struct tn_value result = {0};
    bool known = false;

    if (pickle->depth - pickle->floor < 2) {
        return unsafe(pickle, "call something");
    }
    const struct tn_value callable = pickle->stack[pickle->depth - 2];
    const struct tn_value argument = pickle->stack[pickle->depth - 1];
    const struct tn_value_list *arguments = tn_decode_items(pickle->decoder, argument, false);
    if (tn_value_kind(callable) != TN_VALUE_GLOBAL || !arguments ||
        tn_decode_is_list(pickle->decoder, argument)) {
        return unsafe(pickle, "call something");
    }
    const enum tarn_status status =
        evaluate(pickle, (enum global)callable.as.number, arguments, &result, &known);
    if (status != TARN_OK) {
        return status;
    }
    if (!known) {
        return unsafe(pickle, "call a container type with arguments");
    }
    pickle->depth -= 2;
    return tn_pickle_push(pickle, result);
}

enum tarn_status tn_pickle_call(struct tn_pickle *pickle, uint8_t op)
{
    switch (op) {
    case OP_GLOBAL:
        return import_by_lines(pickle, true);
    case OP_INST:
        return import_by_lines(pickle, false);
    case OP_STACK_GLOBAL:
        return import_from_stack(pickle);
    case OP_REDUCE:
        return reduce(pickle);
    case OP_BUILD:
        return unsafe(pickle, "set the state of an object");
    case OP_OBJ:
    case OP_NEWOBJ:
    case OP_NEWOBJ_EX:
        return unsafe(pickle, "create an object of a class");
    case OP_EXT1:
    case OP_EXT2:
    case OP_EXT4:
        return unsafe(pickle, "import something by a number");
    case OP_PERSID:
    case OP_BINPERSID:
        return unsafe(pickle, "fetch an object from outside the file");
    default:
        return unsafe(pickle, "use a buffer from outside the file");
    }
}
