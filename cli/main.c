// SPDX-License-Identifier: Apache-2.0
/// The tfos command: finds the subcommand.
#include "commands.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tfos.h>

/// Where tfos_node_launch() puts the launcher's socket.
#define LAUNCHER_FD 3

static const char usage[] =
    "usage: tfos COMMAND [OPTION]\n"
    "\n"
    "  status [--json] [--watch]  clusters whose driver runs on this machine: nodes, feed, time "
    "left;\n"
    "                             with --watch each second until Ctrl-C\n"
    "  record COMMAND ...         TFRecord files: check, show, repair, split, shuffle, convert "
    "...\n"
    "  doctor [--json]            what this machine has and lacks, and how to get it\n"
    "  version                    version of tfos\n"
    "  help                       this text\n";

int refuse_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("tfos: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n%s", usage);
    return EXIT_USAGE;
}

static int run_version(int argc, char **argv)
{
    if (argc > 0)
        return refuse_usage("version takes no argument, but got \"%s\"", argv[0]);
    printf("tfos %s\n", tfos_version());
    return 0;
}

static int run_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fputs(usage, stdout);
    return 0;
}

/// Not for people: a Spark task starts it by tfos_node_launch().
static int run_node(int argc, char **argv)
{
    if (argc > 0)
        return refuse_usage("node takes no argument, but got \"%s\"", argv[0]);
    struct tfos_error err;
    enum tfos_status status = tfos_node_run(LAUNCHER_FD, &err);
    if (status >= 0)
        return 0;
    fprintf(stderr, "tfos: %s\n", err.message);
    return 1;
}

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"doctor", run_doctor}, {"help", run_help},       {"--help", run_help},
    {"-h", run_help},       {"node", run_node},       {"record", run_record},
    {"status", run_status}, {"version", run_version}, {"--version", run_version},
};

/// The exit status: what could not be printed has not been done.
static int flush_output(int status)
{
    int reason = ferror(stdout) ? errno : 0; // nothing that fails came after it
    if (fflush(stdout) != 0)
        reason = errno;
    else if (!ferror(stdout))
        return status;
    fprintf(stderr, "tfos: cannot write to the standard output: %s\n",
            strerror(reason ? reason : EIO));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return refuse_usage("a command is missing");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        bool is_asked =
            argc == 3 && strcmp(argv[2], "--help") == 0 && commands[i].run != run_record;
        return flush_output(is_asked ? run_help(0, NULL) : commands[i].run(argc - 2, argv + 2));
    }
    return refuse_usage("there is no command \"%s\"", argv[1]);
}
