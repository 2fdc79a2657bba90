// SPDX-License-Identifier: Apache-2.0
/// The tfos command: finds the subcommand.
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "commands.h"
#include "terminal.h"

/// Where tfos_node_launch() puts the launcher's socket.
#define LAUNCHER_FD 3

static int run_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("tfos %s\n", tfos_version());
    return 0;
}

static int run_help(int argc, char **argv);

static int run_node(int argc, char **argv)
{
    struct tfos_error err;
    (void)argc, (void)argv;
    return tfos_node_run(LAUNCHER_FD, &err) < 0 ? say_error(&err) : 0;
}

static const struct {
    const char *name, *arguments;
    const char *help; ///< NULL: it is not shown
    int (*run)(int argc, char **argv);
    bool takes_nothing;
} commands[] = {
    {"status", " [--json] [--watch]",
     "clusters whose driver runs on this machine: nodes, feed, time left;\n"
     "                             with --watch each second until Ctrl-C",
     run_status, false},
    {"channels", " PID [--json]",
     "what the channels of a fed node hold; tfos status --json has its pid", run_channels, false},
    {"record", " COMMAND ...", "TFRecord files: check, show, repair, split, shuffle, convert ...",
     run_record, false},
    {"doctor", " [--json]", "what this machine has and lacks, and how to get it", run_doctor,
     false},
    {"version", "", "version of tfos", run_version, true},
    {"help", "", "this text", run_help, false},
    {"--version", "", NULL, run_version, true},
    {"--help", "", NULL, run_help, false},
    {"-h", "", NULL, run_help, false},
    {"node", "", NULL, run_node, true}, // not for people: a Spark task starts it
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *out)
{
    char left[64];
    fputs("usage: tfos COMMAND [OPTION]\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        snprintf(left, sizeof(left), "%s%s", commands[i].name, commands[i].arguments);
        if (commands[i].help)
            fprintf(out, "  %-27s%s\n", left, commands[i].help);
    }
}

static int run_help(int argc, char **argv)
{
    (void)argc, (void)argv;
    print_usage(stdout);
    return 0;
}

int refuse_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("tfos: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\n", stderr);
    print_usage(stderr);
    return EXIT_USAGE;
}

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
    size_t i = 0;
    if (argc < 2)
        return refuse_usage("a command is missing");
    while (i < COMMAND_COUNT && strcmp(argv[1], commands[i].name) != 0)
        i++;
    if (i == COMMAND_COUNT)
        return refuse_usage("there is no command \"%s\"", argv[1]);
    if (argc == 3 && strcmp(argv[2], "--help") == 0 && commands[i].run != run_record)
        return flush_output(run_help(0, NULL));
    if (argc > 2 && commands[i].takes_nothing)
        return refuse_usage("%s takes no argument, but got \"%s\"",
                            argv[1][0] == '-' ? argv[1] + 2 : argv[1], argv[2]);
    return flush_output(commands[i].run(argc - 2, argv + 2));
}
