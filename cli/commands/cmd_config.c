/* SPDX-License-Identifier: MIT */
/*
 * `tarn config`: lists the allocator settings, or explains a settings string. All output comes from
 * the library's table of options; docs/config.md is `tarn config --markdown`.
 */
#include "command.h"

#include "config_advice.h"
#include "json_out.h"
#include "tarn/config.h"

#include <string.h>

struct config_values {
    bool json;
    bool markdown;
    bool env;
};

static const struct cli_opt config_opts[] = {
    {.name = "env",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct config_values, env),
     .help = "explain the environment's settings"},
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct config_values, json),
     .help = "print JSON"},
    {.name = "markdown",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct config_values, markdown),
     .help = "print the list as Markdown, as in docs/config.md"},
    {0},
};

static int width_max(int width, const char *text)
{
    const int length = (int)strlen(text);

    return length > width ? length : width;
}

/* ---- the list ---- */

static void list_print(void)
{
    const struct tarn_config_option *option;
    int names = 6;
    int defaults = 7;
    int ranges = 7;

    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        names = width_max(names, option->name);
        defaults = width_max(defaults, option->default_text);
        ranges = width_max(ranges, option->range);
    }
    (void)printf("%-*s  %-*s  %-*s  %s\n", names, "OPTION", defaults, "DEFAULT", ranges, "ALLOWED",
                 "MEANING");
    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        (void)printf("%-*s  %-*s  %-*s  %s\n", names, option->name, defaults, option->default_text,
                     ranges, option->range, option->help);
    }
    (void)putchar('\n');
    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        if (option->alias) {
            (void)printf("%s may be written as %s\n", option->name, option->alias);
        }
    }
}

static const char *kind_name(enum tarn_config_kind kind)
{
    switch (kind) {
    case TARN_CONFIG_BOOL:
        return "bool";
    case TARN_CONFIG_MIB:
        return "mib";
    case TARN_CONFIG_COUNT:
        return "count";
    case TARN_CONFIG_FRACTION:
        return "fraction";
    case TARN_CONFIG_DIVISIONS:
        return "divisions";
    case TARN_CONFIG_BACKEND:
        return "backend";
    case TARN_CONFIG_POLICY:
        return "policy";
    case TARN_CONFIG_RULES:
        return "rules";
    }
    return "unknown";
}

static void list_print_json(void)
{
    const struct tarn_config_option *option;
    struct cli_json json;

    cli_json_begin(&json, stdout, "tarn.config.options/1", true);
    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        cli_json_open_object(&json, NULL);
        cli_json_text(&json, "name", option->name);
        cli_json_text(&json, "alias", option->alias);
        cli_json_text(&json, "kind", kind_name(option->kind));
        cli_json_text(&json, "default", option->default_text);
        cli_json_text(&json, "allowed", option->range);
        cli_json_text(&json, "help", option->help);
        cli_json_text(&json, "since", option->since);
        cli_json_bool(&json, "resets", option->resets);
        cli_json_close(&json);
    }
    cli_json_end(&json);
}

static const char markdown_head[] =
    "# Allocator settings\n"
    "\n"
    "<!-- Written by `tarn config --markdown` from src/alloc/config/config_table.c. -->\n"
    "\n"
    "A settings string is `option:value,option:value`. It comes from the first of the environment\n"
    "variables `TARN_ALLOC_CONF`, `PYTORCH_CUDA_ALLOC_CONF` and `PYTORCH_ALLOC_CONF` that is set, "
    "or\n"
    "from the program. `tarn config 'SETTINGS'` explains one.\n"
    "\n"
    "- Blanks are ignored. The string may end with a comma. The last value of an option wins.\n"
    "- Booleans are `True` and `False`. A number may be followed by anything: `40MB` is 40.\n"
    "- An invalid string changes nothing; the error names the option and the position.\n"
    "- An update at run time resets options marked *resets* to their default unless it names\n"
    "  them; the others keep their value.\n"
    "- *Known* is the earliest of PyTorch 2.4, 2.11 and 2.12 that has the option; *tarn*: PyTorch\n"
    "  has no such option, and refuses it.\n"
    "\n"
    "| Option | Default | Allowed | Known | Resets |\n"
    "|---|---|---|---|---|\n";

static const char markdown_divisions[] =
    "\n"
    "## Lists of divisions\n"
    "\n"
    "`roundup_power2_divisions:[256:1,512:2,1024:4,>:8]` sets the divisions by request size. A\n"
    "pair `MiB:divisions` applies to requests from that power of two up to the next. The first\n"
    "pair also applies to all smaller requests, `>` to all larger than the last pair. Sizes that\n"
    "no pair covers have 0. 0 and 1 disable rounding. The largest interval starts at 32768 MiB.\n";

static void markdown_print(void)
{
    const struct tarn_config_option *option;

    (void)fputs(markdown_head, stdout);
    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        (void)printf("| `%s` | `%s` | %s | %s | %s |\n", option->name, option->default_text,
                     option->range, option->since, option->resets ? "yes" : "");
    }
    (void)fputs("\n## What they do\n\n", stdout);
    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        (void)printf("- `%s`: %s.", option->name, option->help);
        if (option->alias) {
            (void)printf(" Also `%s`.", option->alias);
        }
        (void)putchar('\n');
    }
    (void)fputs(markdown_divisions, stdout);
}

/* ---- explaining settings ---- */

/* A short form of these settings, or NULL. `buffer` has TARN_CONFIG_TEXT_MAX bytes. */
static const char *short_form(const struct tarn_config *config, char *buffer)
{
    return tarn_config_format(config, buffer, TARN_CONFIG_TEXT_MAX, NULL) ? NULL : buffer;
}

static void explain_print(const struct cli_call *call, const struct tarn_config *config)
{
    const char *bold = cli_terminal_style(call->terminal, CLI_STYLE_BOLD);
    const char *plain = cli_terminal_style(call->terminal, CLI_STYLE_PLAIN);
    const struct tarn_config_option *option;
    struct tarn_config_value value;
    struct cli_advice advice;
    char text[TARN_CONFIG_TEXT_MAX];
    int names = 6;
    int values = 5;

    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        names = width_max(names, option->name);
        if (tarn_config_option_value(config, i, &value) == TARN_OK) {
            values = width_max(values, value.text);
        }
    }
    (void)printf("  %-*s  %-*s  %s\n", names, "OPTION", values, "VALUE", "MEANING");
    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        if (tarn_config_option_value(config, i, &value) == TARN_OK) {
            (void)printf("%s%c %-*s  %-*s%s  %s\n", value.is_default ? "" : bold,
                         value.is_default ? ' ' : '*', names, option->name, values, value.text,
                         value.is_default ? "" : plain, option->help);
        }
    }
    const char *format = short_form(config, text);
    (void)printf("\n* differs from the default\nshort form: %s\n",
                 format && format[0] != '\0' ? format : "(all defaults)");
    for (size_t i = 0; cli_config_advice(config, i, &advice); i++) {
        (void)printf("warning: %s\n", advice.text);
    }
}

static void explain_print_json(const struct tarn_config *config)
{
    const struct tarn_config_option *option;
    struct tarn_config_value value;
    struct cli_advice advice;
    struct cli_json json;
    char text[TARN_CONFIG_TEXT_MAX];

    cli_json_begin(&json, stdout, "tarn.config/1", false);
    cli_json_text(&json, "settings", config->text);
    cli_json_text(&json, "short_form", short_form(config, text));
    cli_json_bool(&json, "no_caching", config->no_caching);
    cli_json_open_array(&json, "options");
    for (size_t i = 0; (option = tarn_config_get_option(i)); i++) {
        if (tarn_config_option_value(config, i, &value) == TARN_OK) {
            cli_json_open_object(&json, NULL);
            cli_json_text(&json, "name", option->name);
            cli_json_text(&json, "value", value.text);
            cli_json_bool(&json, "is_default", value.is_default);
            cli_json_close(&json);
        }
    }
    cli_json_close(&json);
    cli_json_open_array(&json, "warnings");
    for (size_t i = 0; cli_config_advice(config, i, &advice); i++) {
        cli_json_text(&json, NULL, advice.text);
    }
    cli_json_close(&json);
    cli_json_end(&json);
}

/* The settings to explain. */
static enum cli_exit settings_read(const struct cli_call *call, struct tarn_config *config_out)
{
    const struct config_values *values = call->values;
    struct tarn_error error;
    const enum tarn_status st = values->env
                                    ? tarn_config_from_env(config_out, &error)
                                    : tarn_config_parse(call->arguments[0], config_out, &error);

    return st ? cli_fail(call->command, CLI_EXIT_USAGE, "%s", error.text) : CLI_EXIT_OK;
}

static enum cli_exit config_run(const struct cli_call *call)
{
    const struct config_values *values = call->values;
    const bool is_explaining = values->env || call->argument_count > 0;
    struct tarn_config config;
    enum cli_exit code;

    if (values->env && call->argument_count > 0) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "use either --env or a settings string");
    }
    if (values->markdown && (is_explaining || values->json)) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "--markdown is only for the list");
    }
    if (!is_explaining) {
        if (values->markdown) {
            markdown_print();
        } else if (values->json) {
            list_print_json();
        } else {
            list_print();
        }
        return CLI_EXIT_OK;
    }
    code = settings_read(call, &config);
    if (code) {
        return code;
    }
    if (values->json) {
        explain_print_json(&config);
    } else {
        explain_print(call, &config);
    }
    return CLI_EXIT_OK;
}

const struct cli_command cli_command_config = {
    .name = "config",
    .arguments = "[SETTINGS]",
    .arguments_max = 1,
    .help = "list allocator settings, or explain a settings string",
    .details = "SETTINGS has the syntax of PYTORCH_CUDA_ALLOC_CONF, such as\n"
               "\"expandable_segments:True,max_split_size_mb:128\".\n",
    .examples = "tarn config\n"
                "tarn config 'expandable_segments:True,max_split_size_mb:128'",
    .is_redirected = true,
    .opts = config_opts,
    .values_size = sizeof(struct config_values),
    .run = config_run,
};
