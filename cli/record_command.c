// SPDX-License-Identifier: Apache-2.0
// tfos record: finds the command, reads its options, and finds the files.
#include <string.h>

#include "commands.h"
#include "manual.h"
#include "record_files.h"
#include "terminal.h"

static const struct {
    const char *name, *arguments, *help;
    int (*run)(const struct record_options *options);
    int least_files, most_files;
    int target_count; ///< of the files, the last ones
} commands[] = {
    {"count", "FILE...", "how many records there are", record_count, 1, 0, 0},
    {"check", "FILE...", "every frame and checksum; names file, offset and kind of each damage",
     record_check, 1, 0, 0},
    {"head", "FILE...", "the first records as lines of JSON (-n: how many, 10)", record_head, 1, 0,
     0},
    {"cat", "FILE...", "all of them", record_cat, 1, 0, 0},
    {"schema", "FILE...", "the columns that the records can be read as", record_schema, 1, 0, 0},
    {"index", "FILE...", "FILE.idx: where each record is, as tfrecord2idx writes it", record_index,
     1, 0, 0},
    {"repair", "FROM TO", "copies the records that are whole", record_repair, 2, 2, 1},
    {"merge", "FILE... TO", "one file of several", record_merge, 2, 0, 1},
    {"split", "FROM PREFIX", "several files of one (-n: how many), record by record in turn",
     record_split, 2, 2, 1},
    {"shuffle", "FILE... TO", "all records in a random order (-n: several files; TO: their prefix)",
     record_shuffle, 2, 0, 1},
    {"convert", "FROM TO",
     "from or to CSV, lines of JSON, Parquet or Arrow IPC, as the endings .csv, .json,\n"
     "                        .jsonl, .parquet, .arrow, .ipc, .feather say",
     record_convert, 2, 2, 1},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

bool record_command_entry(size_t index, struct help_entry *entry)
{
    if (index >= COMMAND_COUNT)
        return false;
    *entry =
        (struct help_entry){commands[index].name, commands[index].arguments, commands[index].help};
    return true;
}

static int print_usage(void)
{
    char left[64];
    fputs("usage: tfos record COMMAND [OPTION]... FILE...\n\n", stdout);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        snprintf(left, sizeof(left), "%s %s", commands[i].name, commands[i].arguments);
        printf("  %-22s%s\n", left, commands[i].help);
    }
    fputs("\nA FILE may be \"-\", the standard input; TO, the standard output. A folder, or a "
          "pattern in quotes, stands\n"
          "for the files that Spark would read there. Files are read plain, by gzip or by zlib, as "
          "they are.\n\n",
          stdout);
    record_options_print(stdout);
    fputs("\nExit status: 0 done, 1 damaged or failed, 2 used wrongly.\n", stdout);
    return 0;
}

int run_record(int argc, char **argv)
{
    struct record_options options;
    struct sources sources = {0};
    bool asks_help;
    size_t i = 0;
    if (argc < 1)
        return refuse_record("%s is missing", "a command");
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "help") == 0)
        return print_usage();
    while (i < COMMAND_COUNT && strcmp(argv[0], commands[i].name) != 0)
        i++;
    if (i == COMMAND_COUNT)
        return refuse_record("there is no command \"%s\"", argv[0]);
    int status = record_options_parse(&options, argc, argv, &asks_help);
    if (status == 0 && asks_help)
        return print_usage();
    if (status != 0)
        return status;
    if (options.file_count < commands[i].least_files)
        return refuse_record("%s: a file is missing", commands[i].name);
    if (commands[i].most_files > 0 && options.file_count > commands[i].most_files)
        return refuse_record("there are more files than it takes, from \"%s\" on",
                             options.files[commands[i].most_files]);
    status = find_sources(&sources, &options, commands[i].target_count);
    if (status == 0)
        status = commands[i].run(&options);
    if (status == 0 && sources.has_failed)
        status = 1;
    clear_sources(&sources);
    return status;
}
