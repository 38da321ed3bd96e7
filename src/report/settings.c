/* SPDX-License-Identifier: MIT */
#include "report/settings.h"

#include "base/assertion.h"
#include "base/decimal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    NAMED = 3, /* settings with a member of their own */
    TEXT_MAX = 32
};

static const struct tn_field *field_find(const struct tn_model *model, const char *name)
{
    const struct tn_model_settings *settings = &model->settings;

    for (size_t i = 0; i < settings->field_count; i++) {
        if (tn_string_is(tn_model_string(model, settings->fields[i].key), name)) {
            return &settings->fields[i];
        }
    }
    return NULL;
}

static bool field_is_true(const struct tn_field *field)
{
    return field && ((field->kind == TN_FIELD_BOOL && field->value.boolean) ||
                     (field->kind == TN_FIELD_INT && field->value.integer > 0));
}

/* The item of a device in a list of all, or in a dict by ordinal. */
static const struct tn_field *item_of_device(const struct tn_model *model, uint32_t container,
                                             uint32_t device)
{
    const struct tn_container items = tn_model_container(model, container);
    char ordinal[TEXT_MAX];

    if (items.kind != TN_CONTAINER_DICT) {
        return device < items.count ? items.items + device : NULL;
    }
    (void)snprintf(ordinal, sizeof ordinal, "%" PRIu32, device);
    for (uint32_t i = 0; i < items.count; i++) {
        if (tn_string_is(tn_model_string(model, items.items[i].key), ordinal)) {
            return items.items + i;
        }
    }
    return NULL;
}

bool tn_settings_trace_overflowed(const struct tn_model *model, uint32_t device)
{
    const struct tn_field *field = field_find(model, "trace_alloc_overflowed");

    if (field && field->kind == TN_FIELD_CONTAINER) {
        field = item_of_device(model, field->value.number, device);
    }
    return field_is_true(field);
}

uint64_t tn_settings_trace_entries(const struct tn_model *model)
{
    const struct tn_field *field = field_find(model, "trace_alloc_max_entries");

    return field && field->kind == TN_FIELD_INT && field->value.integer > 0
               ? (uint64_t)field->value.integer
               : 0;
}

/* ---- in effect ---- */

static bool text_keep(struct tn_arena *arena, const char *text, const char **kept_out)
{
    *kept_out = tn_arena_copy_text(arena, text, strlen(text));
    return *kept_out != NULL;
}

/* A plain value as Python prints it; the kinds without a short form as "...". */
static void value_format(const struct tn_field *field, char text[TEXT_MAX])
{
    switch ((enum tn_field_kind)field->kind) {
    case TN_FIELD_BOOL:
        (void)snprintf(text, TEXT_MAX, "%s", field->value.boolean ? "True" : "False");
        break;
    case TN_FIELD_INT:
        (void)snprintf(text, TEXT_MAX, "%" PRId64, field->value.integer);
        break;
    case TN_FIELD_UINT:
        (void)snprintf(text, TEXT_MAX, "%" PRIu64, field->value.unsigned_integer);
        break;
    case TN_FIELD_FLOAT:
        (void)snprintf(text, TEXT_MAX, "%s", tn_real_format(field->value.real).text);
        break;
    case TN_FIELD_NONE:
        (void)snprintf(text, TEXT_MAX, "None");
        break;
    case TN_FIELD_CONTAINER:
    case TN_FIELD_STACK:
    case TN_FIELD_FRAME:
        (void)snprintf(text, TEXT_MAX, "...");
        break;
    case TN_FIELD_STRING: /* has a value of its own */
        tn_no_case();
        break;
    }
}

/* Strings are borrowed from the model. */
static bool setting_add(const struct tn_model *model, struct tn_arena *arena,
                        const struct tn_field *field, struct tarn_info_setting *setting)
{
    char text[TEXT_MAX] = "";

    setting->name = tn_model_string(model, field->key).text;
    setting->is_on = field->kind == TN_FIELD_FLOAT ? field->value.real > 0 : field_is_true(field);
    if (strcmp(setting->name, "pinned_num_register_threads") == 0) {
        setting->is_on = field->kind == TN_FIELD_INT && field->value.integer > 1; /* 1 is usual */
    } else if (strncmp(setting->name, "trace_alloc_", strlen("trace_alloc_")) == 0) {
        setting->is_on = false; /* about the recording */
    }
    if (field->kind == TN_FIELD_STRING) {
        setting->value = tn_model_string(model, field->value.string).text;
        setting->is_on = setting->value[0] != '\0';
        return true;
    }
    value_format(field, text);
    return text_keep(arena, text, &setting->value);
}

static bool divisions_are_set(const struct tn_model_settings *settings)
{
    bool any = false;

    for (unsigned i = 0; i < TN_ROUNDUP_INTERVALS; i++) {
        any = any || settings->roundup_power2_divisions[i] > 1;
    }
    return any;
}

bool tn_settings_in_effect(const struct tn_model *model, struct tn_arena *arena,
                           struct tarn_info_result *info)
{
    const struct tn_model_settings *from = &model->settings;
    struct tn_field named[NAMED] = {
        {.kind = TN_FIELD_INT, .value.integer = from->max_split_size},
        {.kind = TN_FIELD_FLOAT, .value.real = from->garbage_collection_threshold},
        {.kind = TN_FIELD_BOOL, .value.boolean = from->expandable_segments},
    };
    static const char *const names[NAMED] = {"max_split_size", "garbage_collection_threshold",
                                             "expandable_segments"};
    struct tarn_info_setting *settings =
        tn_arena_alloc_array(arena, NAMED + 1 + from->field_count, sizeof *settings);
    size_t count = 0;
    bool good = settings != NULL;

    for (size_t i = 0; i < NAMED && good && from->present; i++) {
        good = setting_add(model, arena, &named[i], &settings[count]);
        settings[count++].name = names[i];
    }
    if (good && from->has_roundup) {
        const bool is_on = divisions_are_set(from);

        settings[count++] = (struct tarn_info_setting){
            .name = "roundup_power2_divisions", .value = is_on ? "set" : "none", .is_on = is_on};
    }
    for (size_t i = 0; i < from->field_count && good; i++) {
        good = setting_add(model, arena, &from->fields[i], &settings[count++]);
    }
    info->in_effect = settings;
    info->in_effect_count = count;
    return good;
}
