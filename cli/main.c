// SPDX-License-Identifier: Apache-2.0
/// The tfos command: finds the subcommand.
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "commands.h"
#include "manual.h"
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
static int run_completion(int argc, char **argv);
static int run_manual(int argc, char **argv);

static int run_node(int argc, char **argv)
{
    struct tfos_error err;
    (void)argc, (void)argv;
    return tfos_node_run(LAUNCHER_FD, NULL, &err) < 0 ? say_error(&err) : 0;
}

static const struct {
    const char *name, *arguments;
    const char *help; ///< NULL: it is not shown
    int (*run)(int argc, char **argv);
    bool takes_nothing;
} commands[] = {
    {"status", " [--json] [--watch]", "clusters driven from here; --watch: each second", run_status,
     false},
    {"stop", " CLUSTER", "end a cluster in order", run_stop, false},
    {"gpu", " [--json] [--watch]", "GPUs here, and which node holds them", run_gpu, false},
    {"channels", " PID [--json]", "what the channels of a fed node hold", run_channels, false},
    {"record", " COMMAND ...", "TFRecord files: check, show, repair, convert ...", run_record,
     false},
    {"fs", " COMMAND ...", "files here and in Hadoop's file systems", run_fs, false},
    {"deploy", " KIND ...", "what a cluster manager takes, from a template", run_deploy, false},
    {"doctor", " [--json]", "what this machine has and lacks, and how to get it", run_doctor,
     false},
    {"completion", " bash|zsh", "what makes a shell complete these words", run_completion, false},
    {"manual", "", "the manual page, for man -l -", run_manual, true},
    {"version", "", "version of tfos", run_version, true},
    {"help", "", "this text", run_help, false},
    {"--version", "", NULL, run_version, true},
    {"--help", "", NULL, run_help, false},
    {"-h", "", NULL, run_help, false},
    {"node", "", NULL, run_node, true},            // not for people: a Spark task starts it
    {"ps", "", NULL, run_parameter_server, false}, // nor this: a node starts it
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

bool command_entry(size_t index, struct help_entry *entry)
{
    if (index >= COMMAND_COUNT || !commands[index].help)
        return false; // those that are not shown are the last ones
    *entry =
        (struct help_entry){commands[index].name, commands[index].arguments, commands[index].help};
    return true;
}

static const struct example examples[] = {
    {"tfos doctor", "before the first run"},
    {"tfos status --watch", "while a cluster runs"},
    {"tfos record check 'data/*.tfrecord'", "is a data set whole?"},
    {"tfos record convert table.csv out.tfrecord", "from a table"},
    {"tfos deploy kubernetes --workers 4 --ps 2", "for kubectl create -f -"},
    {"source <(tfos completion bash)", "in ~/.bashrc"},
};

#define EXAMPLE_COUNT (sizeof(examples) / sizeof(examples[0]))

const struct example *example_at(size_t index)
{
    return index < EXAMPLE_COUNT ? &examples[index] : NULL;
}

static int run_completion(int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], "bash") == 0)
        print_bash_completion(stdout);
    else if (argc == 1 && strcmp(argv[0], "zsh") == 0)
        print_zsh_completion(stdout);
    else
        return refuse_usage("completion needs the name of a shell, bash or zsh");
    return 0;
}

static int run_manual(int argc, char **argv)
{
    (void)argc, (void)argv;
    print_manual(stdout);
    return 0;
}

static void print_usage(FILE *out)
{
    char left[64];
    fputs("usage: tfos COMMAND [OPTION]\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        snprintf(left, sizeof(left), "%s%s", commands[i].name, commands[i].arguments);
        if (commands[i].help)
            fprintf(out, "  %-26s%s\n", left, commands[i].help);
    }
}

static void print_examples(FILE *out)
{
    fputs("\nexamples:\n", out);
    for (size_t i = 0; i < EXAMPLE_COUNT; i++)
        fprintf(out, "  %-46s # %s\n", examples[i].command, examples[i].purpose);
    fputs("\ntfos record --help has its commands and options, tfos manual has all.\n", out);
}

static int run_help(int argc, char **argv)
{
    (void)argc, (void)argv;
    print_usage(stdout);
    print_examples(stdout);
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
    bool has_own_help =
        commands[i].run == run_record || commands[i].run == run_fs || commands[i].run == run_deploy;
    if (argc == 3 && strcmp(argv[2], "--help") == 0 && !has_own_help)
        return flush_output(run_help(0, NULL));
    if (argc > 2 && commands[i].takes_nothing)
        return refuse_usage("%s takes no argument, but got \"%s\"",
                            argv[1][0] == '-' ? argv[1] + 2 : argv[1], argv[2]);
    return flush_output(commands[i].run(argc - 2, argv + 2));
}
