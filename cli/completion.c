/* SPDX-License-Identifier: MIT */
#include "completion.h"

#include "command.h"

#include <string.h>

/* Calls `each` for every option of a command; NULL stands for the program itself. */
static void opts_walk(FILE *file, const struct cli_command *command,
                      void (*each)(FILE *file, const struct cli_command *command,
                                   const struct cli_opt *opt))
{
    const struct cli_opt *tables[CLI_COMMAND_TABLES_MAX] = {cli_program_opts, cli_common_opts,
                                                            NULL};

    if (command) {
        cli_command_tables(command, tables);
    }
    for (size_t i = 0; tables[i]; i++) {
        for (const struct cli_opt *opt = tables[i]; opt->name; opt++) {
            each(file, command, opt);
        }
    }
}

static bool takes_file(const struct cli_opt *opt)
{
    return opt->value && (strcmp(opt->value, "FILE") == 0 || strcmp(opt->value, "FOLDER") == 0);
}

/* Writes text within single quotes, escaping single quotes. */
static void quoted_put(FILE *file, const char *text, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'') {
            (void)fputs(quote, file);
        } else {
            (void)fputc(*text, file);
        }
    }
}

static void commands_put(FILE *file)
{
    for (size_t i = 0; cli_commands[i]; i++) {
        (void)fprintf(file, "%s%s", i ? " " : "", cli_commands[i]->name);
    }
}

static void words_put(FILE *file, const char *const *words)
{
    for (size_t i = 0; words[i]; i++) {
        (void)fprintf(file, "%s%s", i ? " " : "", words[i]);
    }
}

/* The possible arguments of a command; false: file names. */
static bool arguments_put(FILE *file, const struct cli_command *command)
{
    if (cli_command_takes_command(command)) {
        commands_put(file);
    } else if (command->words) {
        words_put(file, command->words);
    } else {
        return false;
    }
    return true;
}

/* ---- bash ---- */

static void bash_name(FILE *file, const struct cli_command *command, const struct cli_opt *opt)
{
    (void)command;
    (void)fprintf(file, " --%s", opt->name);
    if (opt->letter) {
        (void)fprintf(file, " -%c", opt->letter);
    }
}

/* The case for the value of an option: its choices, a file, or nothing. */
static void bash_value(FILE *file, const struct cli_command *command, const struct cli_opt *opt)
{
    if (opt->kind == CLI_OPT_FLAG) {
        return;
    }
    (void)fprintf(file, "    %s:--%s", command ? command->name : "", opt->name);
    if (opt->letter) {
        (void)fprintf(file, " | %s:-%c", command ? command->name : "", opt->letter);
    }
    (void)fputs(")\n        ", file);
    if (opt->choices) {
        (void)fputs("_tarn_words \"", file);
        words_put(file, opt->choices);
        (void)fputs("\"\n", file);
    } else {
        (void)fputs(takes_file(opt) ? "_tarn_files\n" : ":\n", file);
    }
    (void)fputs("        return\n        ;;\n", file);
}

static void bash_command(FILE *file, const struct cli_command *command)
{
    (void)fprintf(file, "    %s:-*)\n        _tarn_words \"", command->name);
    opts_walk(file, command, bash_name);
    (void)fprintf(file, "\"\n        ;;\n    %s:*)\n        ", command->name);
    if (cli_command_takes_command(command) || command->words) {
        (void)fputs("_tarn_words \"", file);
        (void)arguments_put(file, command);
        (void)fputs("\"\n", file);
    } else {
        (void)fputs(command->arguments[0] ? "_tarn_files\n" : ":\n", file);
    }
    (void)fputs("        ;;\n", file);
}

static const char bash_head[] =
    "# bash completion for tarn, written by `tarn completion bash`.\n"
    "\n"
    "_tarn_words() {\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
    "}\n"
    "\n"
    "_tarn_files() {\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "}\n"
    "\n"
    "_tarn() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= i\n"
    "    COMPREPLY=()\n"
    "    # --option=value arrives as three words.\n"
    "    if [[ $cur == = ]]; then\n"
    "        cur=\n"
    "    elif [[ $prev == = ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        --color) ((i += 1)) ;;\n"
    "        -* | =) ;;\n"
    "        *)\n"
    "            command=${COMP_WORDS[i]//-/_}\n"
    "            break\n"
    "            ;;\n"
    "        esac\n"
    "    done\n"
    "    case $command:$prev in\n";

void cli_completion_bash(FILE *file)
{
    (void)fputs(bash_head, file);
    opts_walk(file, NULL, bash_value);
    for (size_t i = 0; cli_commands[i]; i++) {
        opts_walk(file, cli_commands[i], bash_value);
    }
    (void)fputs("    esac\n    case $command:$cur in\n    :-*)\n        _tarn_words \"", file);
    opts_walk(file, NULL, bash_name);
    (void)fputs("\"\n        ;;\n    :*)\n        _tarn_words \"", file);
    commands_put(file);
    (void)fputs("\"\n        ;;\n", file);
    for (size_t i = 0; cli_commands[i]; i++) {
        bash_command(file, cli_commands[i]);
    }
    (void)fputs("    esac\n}\n\ncomplete -F _tarn tarn\n", file);
}

/* ---- zsh ---- */

/* Help inside the [] of an _arguments specification. */
static void zsh_help(FILE *file, const char *help)
{
    for (; *help; help++) {
        if (*help == '\'') {
            (void)fputs("'\\''", file);
            continue;
        }
        if (strchr("[]:\\", *help)) {
            (void)fputc('\\', file);
        }
        (void)fputc(*help, file);
    }
}

static void zsh_value(FILE *file, const struct cli_opt *opt)
{
    if (opt->kind == CLI_OPT_FLAG) {
        return;
    }
    (void)fprintf(file, ":%s:", opt->value ? opt->value : opt->name);
    if (opt->choices) {
        (void)fputc('(', file);
        words_put(file, opt->choices);
        (void)fputc(')', file);
    } else {
        (void)fputs(takes_file(opt) ? "_files" : " ", file);
    }
}

static void zsh_spec(FILE *file, const char *dashes, const char *name, const struct cli_opt *opt)
{
    const bool is_long = dashes[1] != '\0';

    (void)fprintf(file, " \\\n            '%s%s%s%s[", opt->kind == CLI_OPT_TEXTS ? "*" : "",
                  dashes, name,
                  opt->kind == CLI_OPT_FLAG ? ""
                  : is_long                 ? "="
                                            : "+");
    zsh_help(file, opt->help);
    (void)fputc(']', file);
    zsh_value(file, opt);
    (void)fputc('\'', file);
}

static void zsh_opt(FILE *file, const struct cli_command *command, const struct cli_opt *opt)
{
    const char letter[2] = {opt->letter, '\0'};

    (void)command;
    zsh_spec(file, "--", opt->name, opt);
    if (opt->letter) {
        zsh_spec(file, "-", letter, opt);
    }
}

static void zsh_command(FILE *file, const struct cli_command *command)
{
    (void)fprintf(file, "        %s)\n            _arguments -s", command->name);
    opts_walk(file, command, zsh_opt);
    if (command->arguments[0]) {
        (void)fputs(" \\\n            '*:argument:", file);
        if (cli_command_takes_command(command) || command->words) {
            (void)fputc('(', file);
            (void)arguments_put(file, command);
            (void)fputs(")'", file);
        } else {
            (void)fputs("_files'", file);
        }
    }
    (void)fputs("\n            ;;\n", file);
}

void cli_completion_zsh(FILE *file)
{
    (void)fputs("#compdef tarn\n# zsh completion for tarn, written by `tarn completion zsh`.\n\n"
                "_tarn() {\n    local context state state_descr line\n    typeset -A opt_args\n"
                "    local -a commands\n    commands=(\n",
                file);
    for (size_t i = 0; cli_commands[i]; i++) {
        (void)fprintf(file, "        '%s:", cli_commands[i]->name);
        quoted_put(file, cli_commands[i]->help, "'\\''");
        (void)fputs("'\n", file);
    }
    (void)fputs("    )\n    _arguments -C", file);
    opts_walk(file, NULL, zsh_opt);
    (void)fputs(" \\\n        '1:command:->command' '*::argument:->arguments'\n"
                "    case $state in\n    command)\n        _describe -t commands command commands\n"
                "        ;;\n    arguments)\n        case ${words[1]//-/_} in\n",
                file);
    for (size_t i = 0; cli_commands[i]; i++) {
        zsh_command(file, cli_commands[i]);
    }
    (void)fputs("        esac\n        ;;\n    esac\n}\n\n"
                "if [[ $funcstack[1] == _tarn ]]; then\n    _tarn \"$@\"\nelse\n"
                "    compdef _tarn tarn\nfi\n",
                file);
}

/* ---- fish ---- */

static void fish_opt(FILE *file, const struct cli_command *command, const struct cli_opt *opt)
{
    if (command) {
        (void)fprintf(file, "complete -c tarn -n '__fish_seen_subcommand_from %s' -l %s",
                      command->name, opt->name);
    } else {
        (void)fprintf(file, "complete -c tarn -n __fish_use_subcommand -l %s", opt->name);
    }
    if (opt->letter) {
        (void)fprintf(file, " -s %c", opt->letter);
    }
    if (opt->choices) {
        (void)fputs(" -xa '", file);
        words_put(file, opt->choices);
        (void)fputc('\'', file);
    } else if (opt->kind != CLI_OPT_FLAG) {
        (void)fputs(takes_file(opt) ? " -rF" : " -x", file);
    }
    (void)fputs(" -d '", file);
    quoted_put(file, opt->help, "\\'");
    (void)fputs("'\n", file);
}

static void fish_command(FILE *file, const struct cli_command *command)
{
    (void)fprintf(file, "complete -c tarn -n __fish_use_subcommand -f -a %s -d '", command->name);
    quoted_put(file, command->help, "\\'");
    (void)fputs("'\n", file);
    if (cli_command_takes_command(command) || command->words || !command->arguments[0]) {
        (void)fprintf(file, "complete -c tarn -n '__fish_seen_subcommand_from %s' -f -a '",
                      command->name);
        (void)arguments_put(file, command);
        (void)fputs("'\n", file);
    }
    opts_walk(file, command, fish_opt);
}

void cli_completion_fish(FILE *file)
{
    (void)fputs("# fish completion for tarn, written by `tarn completion fish`.\n\n", file);
    opts_walk(file, NULL, fish_opt);
    for (size_t i = 0; cli_commands[i]; i++) {
        fish_command(file, cli_commands[i]);
    }
}
