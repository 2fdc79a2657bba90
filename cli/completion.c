// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "manual.h"

/// Prints the options in the arguments of a command, as "[--json]" does, each by
/// `format`.
static void print_options(FILE *out, const char *arguments, const char *format)
{
    char option[32];
    while ((arguments = strstr(arguments, "--"))) {
        size_t size = strcspn(arguments, " ]");
        snprintf(option, sizeof(option), "%.*s", (int)size, arguments);
        fprintf(out, format, option);
        arguments += size;
    }
}

static bool takes_kind(const struct help_entry *entry)
{
    return strcmp(entry->name, "deploy") == 0;
}

/// The words that a command takes one of, as in " bash|zsh"; nothing where it takes others.
static void print_words(FILE *out, const struct help_entry *entry)
{
    struct help_entry kind;
    for (size_t i = 0; takes_kind(entry) && deploy_kind_entry(i, &kind); i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", kind.name);
    if (!strchr(entry->arguments, '|'))
        return;
    for (const char *part = entry->arguments + 1; *part; part++)
        fputc(*part == '|' ? ' ' : *part, out);
}

static void print_options_of(FILE *out, const struct help_entry *entry)
{
    print_options(out, takes_kind(entry) ? "--workers --ps" : entry->arguments, " %s");
}

static const char bash_opening[] =
    "# Completion of tfos for bash: source <(tfos completion bash)\n"
    "_tfos()\n"
    "{\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= option=\n"
    "    COMPREPLY=()\n"
    "    # bash splits --type=example at the sign\n"
    "    if [ \"$word\" = = ]; then\n"
    "        option=$before word=\n"
    "    elif [ \"$before\" = = ]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        words='";

static const char bash_closing[] =
    "        esac\n"
    "    fi\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
    "    [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace\n"
    "}\n"
    "complete -o default -F _tfos tfos\n";

static void print_bash_record(FILE *out)
{
    struct help_entry entry;
    struct option_entry option;
    fputs("        record)\n            if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
          "                words='",
          out);
    for (size_t i = 0; record_command_entry(i, &entry); i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", entry.name);
    fputs(" --help'\n            elif [ -n \"$option\" ]; then\n                case $option in\n",
          out);
    for (size_t i = 0; record_option_entry(i, &option); i++) {
        if (!option.values[0])
            continue;
        fprintf(out, "                --%s) words='", option.name);
        for (size_t value = 0; value < OPTION_VALUES && option.values[value]; value++)
            fprintf(out, "%s%s", value > 0 ? " " : "", option.values[value]);
        fputs("' ;;\n", out);
    }
    fputs("                esac\n            elif [[ $word == -* ]]; then\n                words='",
          out);
    for (size_t i = 0; record_option_entry(i, &option); i++)
        fprintf(out, "%s--%s%s", i > 0 ? " " : "", option.name, option.takes_value ? "=" : "");
    fputs(" --help'\n            fi\n            ;;\n", out);
}

void print_bash_completion(FILE *out)
{
    struct help_entry entry;
    fputs(bash_opening, out);
    for (size_t i = 0; command_entry(i, &entry); i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", entry.name);
    fputs(" --help --version'\n    else\n        case ${COMP_WORDS[1]} in\n", out);
    for (size_t i = 0; command_entry(i, &entry); i++) {
        if (strcmp(entry.name, "record") == 0)
            continue;
        fprintf(out, "        %s) words='", entry.name);
        print_words(out, &entry);
        print_options_of(out, &entry);
        fputs(" --help' ;;\n", out);
    }
    print_bash_record(out);
    fputs(bash_closing, out);
}

/// Prints text within single quotes of zsh, where colons and brackets mean something to _describe
/// and _arguments. A help text may be broken into lines that are indented.
static void print_quoted(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n') {
            fputc(' ', out);
            text += strspn(text + 1, " ");
        } else if (*text == '\'') {
            fputs("'\\''", out);
        } else {
            fprintf(out, "%s%c", strchr(":[]\\", *text) ? "\\" : "", *text);
        }
    }
}

static void print_described(FILE *out, const struct help_entry *entry)
{
    fprintf(out, " '%s:", entry->name);
    print_quoted(out, entry->help);
    fputc('\'', out);
}

static void print_zsh_record(FILE *out)
{
    struct help_entry entry;
    struct option_entry option;
    fputs("    record)\n        if (( CURRENT == 2 )); then\n            commands=(", out);
    for (size_t i = 0; record_command_entry(i, &entry); i++)
        print_described(out, &entry);
    fputs(")\n            _describe command commands\n            return\n        fi\n"
          "        shift words\n        (( CURRENT-- ))\n        _arguments '*:file:_files' --help",
          out);
    for (size_t i = 0; record_option_entry(i, &option); i++) {
        fprintf(out, " \\\n            '--%s%s[", option.name, option.takes_value ? "=" : "");
        print_quoted(out, option.help);
        fputc(']', out);
        if (option.takes_value)
            fprintf(out, ":%s:", option.name);
        for (size_t value = 0; value < OPTION_VALUES && option.values[value]; value++)
            fprintf(out, "%s%s", value > 0 ? " " : "(", option.values[value]);
        fprintf(out, "%s'", option.values[0] ? ")" : "");
    }
    fputs("\n        ;;\n", out);
}

void print_zsh_completion(FILE *out)
{
    struct help_entry entry;
    fputs("#compdef tfos\n# Completion of tfos for zsh: source <(tfos completion zsh), or as _tfos "
          "in "
          "a folder of fpath\n_tfos() {\n    local -a commands\n    if (( CURRENT == 2 )); then\n"
          "        commands=(",
          out);
    for (size_t i = 0; command_entry(i, &entry); i++)
        print_described(out, &entry);
    fputs(")\n        _describe command commands\n        return\n    fi\n    shift words\n"
          "    (( CURRENT-- ))\n    case $words[1] in\n",
          out);
    for (size_t i = 0; command_entry(i, &entry); i++) {
        if (strcmp(entry.name, "record") == 0)
            continue;
        fprintf(out, "    %s) _arguments --help", entry.name);
        print_options_of(out, &entry);
        if (takes_kind(&entry) || strchr(entry.arguments, '|')) {
            fputs(" '1:word:(", out);
            print_words(out, &entry);
            fputs(")'", out);
        }
        fputs(" ;;\n", out);
    }
    print_zsh_record(out);
    fputs("    esac\n}\n"
          "if [[ $funcstack[1] == _tfos ]]; then _tfos \"$@\"; else compdef _tfos tfos; fi\n",
          out);
}
