// SPDX-License-Identifier: Apache-2.0
#include "manual.h"

#include <string.h>
#include <tfos.h>

/// Prints text for roff: a help text may be broken into lines that are indented.
static void print_text(FILE *out, const char *text)
{
    bool is_start = true;
    for (; *text; text++) {
        if (is_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        is_start = *text == '\n';
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        if (is_start)
            text += strspn(text + 1, " ");
    }
    fputc('\n', out);
}

/// A paragraph with a heading of its own; `argument` follows the bold name.
static void print_item(FILE *out, const char *prefix, const char *name, const char *argument,
                       const char *help)
{
    fprintf(out, ".TP\n\\fB");
    for (const char *part = prefix; *part; part++)
        fprintf(out, "%s%c", *part == '-' ? "\\" : "", *part);
    for (; *name; name++)
        fprintf(out, "%s%c", *name == '-' ? "\\" : "", *name);
    fprintf(out, "\\fR");
    print_text(out, argument);
    print_text(out, help);
}

static const char opening[] =
    ".SH NAME\n"
    "tfos \\- distributed TensorFlow on Apache Spark\n"
    ".SH SYNOPSIS\n"
    ".B tfos\n"
    ".I COMMAND\n"
    ".RI [ OPTION ]...\n"
    ".SH DESCRIPTION\n"
    "Looks into running clusters, works on TFRecord files, renders the templates of deploy for\n"
    "cluster managers, and says what a machine has of what a cluster needs. Clusters are started "
    "by the Python package tensorflowonspark.\n";

static const char closing[] =
    ".SH FILES NAMED\n"
    "A file of\n"
    ".B tfos record\n"
    "may be \\-, the standard input or output. A folder, or a pattern in quotes, stands for the\n"
    "files that Spark would read there. Files are read plain, by gzip or by zlib, as they are.\n"
    ".SH EXIT STATUS\n"
    "0 done; 1 damaged, missing or failed; 2 used wrongly.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBPYSPARK_PYTHON, JAVA_HOME, SPARK_HOME, HADOOP_HOME, HADOOP_CONF_DIR\\fR\n"
    "what\n"
    ".B tfos doctor\n"
    "looks at, as Spark does.\n"
    ".TP\n\\fBTMPDIR\\fR\n"
    "where\n"
    ".B tfos record shuffle\n"
    "keeps what does not fit into its memory.\n";

void print_manual(FILE *out)
{
    struct help_entry entry;
    struct option_entry option;
    fprintf(out, ".TH TFOS 1 \"\" \"tfos %s\" \"User Commands\"\n%s.SH COMMANDS\n", tfos_version(),
            opening);
    for (size_t i = 0; command_entry(i, &entry); i++)
        print_item(out, "", entry.name, entry.arguments, entry.help);
    fputs(".SH KINDS OF TFOS DEPLOY\n", out);
    for (size_t i = 0; deploy_kind_entry(i, &entry); i++)
        print_item(out, "tfos deploy ", entry.name, " [--workers N] [--ps N] [NAME=VALUE ...]",
                   entry.help);
    fputs(".SH COMMANDS OF TFOS RECORD\n", out);
    for (size_t i = 0; record_command_entry(i, &entry); i++) {
        char argument[64];
        snprintf(argument, sizeof(argument), " %s", entry.arguments);
        print_item(out, "tfos record ", entry.name, argument, entry.help);
    }
    fputs(".SH OPTIONS OF TFOS RECORD\n", out);
    for (size_t i = 0; record_option_entry(i, &option); i++)
        print_item(out, i == 0 ? "-n, --" : "--", option.name, option.argument, option.help);
    fputs(closing, out);
    fputs(".SH EXAMPLES\n", out);
    for (size_t i = 0; example_at(i); i++)
        print_item(out, "", example_at(i)->command, "", example_at(i)->purpose);
}
