// SPDX-License-Identifier: Apache-2.0
// tfos record: finds the subcommand and reads its options.
#include "record_command.h"

#include "commands.h"
#include "progress.h"
#include "record_sources.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: tfos record COMMAND [OPTION]... FILE...\n"
    "\n"
    "  count FILE...         how many records there are\n"
    "  check FILE...         every frame and checksum; names file, offset and kind of each damage\n"
    "  head FILE...          the first records as lines of JSON (-n: how many, 10)\n"
    "  cat FILE...           all of them\n"
    "  schema FILE...        the columns that the records can be read as\n"
    "  index FILE...         FILE.idx: where each record is, as tfrecord2idx writes it\n"
    "  repair FROM TO        copies the records that are whole\n"
    "  merge FILE... TO      one file of several\n"
    "  split FROM PREFIX     several files of one (-n: how many), record by record in turn\n"
    "  shuffle FILE... TO    all records in an order by chance (-n: several files; TO: their "
    "prefix)\n"
    "  convert FROM TO       from or to CSV, lines of JSON, Parquet or Arrow IPC, as the endings "
    ".csv, .json,\n"
    "                        .jsonl, .parquet, .arrow, .ipc, .feather say\n"
    "\n"
    "A FILE may be \"-\", the standard input; TO, the standard output. A folder, or a pattern in "
    "quotes, stands\n"
    "for the files that Spark would read there. Files are read plain, by gzip or by zlib, as they "
    "are.\n"
    "\n"
    "  -n, --number=N             see above; cat, schema: only the first N records of each file\n"
    "      --type=TYPE            of records: example (unless said), sequence, bytes\n"
    "      --skip-damaged         pass over what is damaged, and say so, instead of failing\n"
    "      --compress=NAME        of what is written: gzip, zlib, none; unless said, by the ending "
    ".gz\n"
    "      --max-record-size=N    bytes; a larger one counts as damage (1 GiB)\n"
    "      --json                 results as JSON\n"
    "      --seed=N               shuffle: the same order again\n"
    "      --memory=N             shuffle: bytes of records to hold (256 MiB); the rest waits in "
    "TMPDIR\n"
    "      --from=, --to=FORMAT   convert: tfrecord, csv, json, parquet, arrow, whatever the "
    "names\n"
    "      --schema=COLUMNS       convert: \"NAME TYPE, ...\", types as schema prints them; unless "
    "said, found\n"
    "      --no-header            convert: CSV without a line of names\n"
    "      --exact                convert: refuse numbers that no float is, instead of rounding "
    "them\n"
    "      --allow-rounding       convert: say only how many were rounded\n"
    "\n"
    "Exit status: 0 done, 1 damaged or failed, 2 used wrongly.\n";

static int refuse(const char *format, const char *argument)
{
    fputs("tfos record: ", stderr);
    fprintf(stderr, format, argument);
    fputs("; tfos record --help says how it is used\n", stderr);
    return EXIT_USAGE;
}

int say_error(const struct tfos_error *err)
{
    progress_end();
    fprintf(stderr, "tfos: %s\n", err->message);
    return 1;
}

struct tfos_stream *open_input(const char *path)
{
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    enum tfos_status status = strcmp(path, "-") == 0
                                  ? tfos_stream_open_fd(STDIN_FILENO, &stream, &err)
                                  : tfos_stream_open_reader(path, &stream, &err);
    if (status < 0)
        say_error(&err);
    return stream;
}

struct tfos_stream *open_output(const char *path)
{
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    enum tfos_status status = strcmp(path, "-") == 0
                                  ? tfos_stream_open_fd(STDOUT_FILENO, &stream, &err)
                                  : tfos_stream_open_writer(path, &stream, &err);
    if (status < 0)
        say_error(&err);
    return stream;
}

struct tfos_record_reader_options reader_options(const struct record_options *options,
                                                 const char *path)
{
    return (struct tfos_record_reader_options){
        .compression = options->compression,
        .mode = options->mode,
        .max_record_size = options->max_record_size,
        .name = strcmp(path, "-") == 0 ? "the standard input" : path,
    };
}

/// A text that stands for a number.
struct choice {
    const char *text;
    int value;
};

static const struct choice compressions[] = {{"none", TFOS_COMPRESSION_NONE},
                                             {"gzip", TFOS_COMPRESSION_GZIP},
                                             {"zlib", TFOS_COMPRESSION_ZLIB},
                                             {NULL, 0}};
static const struct choice types[] = {{"example", TFOS_RECORD_EXAMPLE},
                                      {"sequence", TFOS_RECORD_SEQUENCE_EXAMPLE},
                                      {"bytes", TFOS_RECORD_BYTES},
                                      {"Example", TFOS_RECORD_EXAMPLE}, // as messages have it
                                      {"SequenceExample", TFOS_RECORD_SEQUENCE_EXAMPLE},
                                      {"ByteArray", TFOS_RECORD_BYTES},
                                      {NULL, 0}};

static bool choose(const struct choice *choices, const char *text, int *value)
{
    for (; choices->text; choices++)
        if (strcmp(choices->text, text) == 0) {
            *value = choices->value;
            return true;
        }
    return false;
}

static bool read_number(const char *text, unsigned long long max, unsigned long long *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *value > 0 &&
           *value <= max;
}

// 0, or the exit status. `word` is what stands at the prompt, `text` the option's value.
static int read_option(int option, const char *word, const char *text,
                       struct record_options *options)
{
    unsigned long long number;
    int value;
    switch (option) {
    case 'n':
        if (!read_number(text, 1u << 30, &number))
            return refuse("--number takes a number from 1 on, not \"%s\"", text);
        options->limit = (long)number;
        return 0;
    case 't':
        if (!choose(types, text, &value))
            return refuse("--type takes example, sequence or bytes, not \"%s\"", text);
        options->type = (enum tfos_record_type)value;
        return 0;
    case 'c':
        if (!choose(compressions, text, &value))
            return refuse("--compress takes none, gzip or zlib, which TensorFlow can read, not "
                          "\"%s\"",
                          text);
        options->write_compression = (enum tfos_compression)value;
        return 0;
    case 'm':
        if (!read_number(text, INT64_MAX, &number))
            return refuse("--max-record-size takes a number of bytes, not \"%s\"", text);
        options->max_record_size = number;
        return 0;
    case 'S':
        if (!read_number(text, UINT64_MAX, &number) && strcmp(text, "0") != 0)
            return refuse("--seed takes a number, not \"%s\"", text);
        options->seed = number;
        options->has_seed = true;
        return 0;
    case 'M':
        if (!read_number(text, INT64_MAX, &number))
            return refuse("--memory takes a number of bytes, not \"%s\"", text);
        options->memory = number;
        return 0;
    case 'F':
        options->from = text;
        return 0;
    case 'T':
        options->to = text;
        return 0;
    case 'C':
        options->schema = text;
        return 0;
    case 'H':
        options->has_no_header = true;
        return 0;
    case 'R':
        options->allow_rounding = true;
        return 0;
    case 'E':
        options->is_exact = true;
        return 0;
    case 's':
        options->mode = TFOS_RECORD_SKIP_RECORD;
        return 0;
    case 'j':
        options->is_json = true;
        return 0;
    case ':':
        return refuse("%s takes a value", word);
    default:
        return refuse("does not know %s", word);
    }
}

static const struct option long_options[] = {
    {"number", required_argument, NULL, 'n'},   {"type", required_argument, NULL, 't'},
    {"compress", required_argument, NULL, 'c'}, {"max-record-size", required_argument, NULL, 'm'},
    {"skip-damaged", no_argument, NULL, 's'},   {"json", no_argument, NULL, 'j'},
    {"seed", required_argument, NULL, 'S'},     {"memory", required_argument, NULL, 'M'},
    {"from", required_argument, NULL, 'F'},     {"to", required_argument, NULL, 'T'},
    {"schema", required_argument, NULL, 'C'},   {"no-header", no_argument, NULL, 'H'},
    {"allow-rounding", no_argument, NULL, 'R'}, {"exact", no_argument, NULL, 'E'},
    {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
};

static int record_head(const struct record_options *options)
{
    struct record_options some = *options;
    some.limit = options->limit > 0 ? options->limit : 10;
    return record_cat(&some);
}

static const struct {
    const char *name;
    record_command *run;
    int least_files, most_files;
    int target_count; ///< of them, the last ones
} commands[] = {
    {"count", record_count, 1, 0, 0},     {"check", record_check, 1, 0, 0},
    {"head", record_head, 1, 0, 0},       {"cat", record_cat, 1, 0, 0},
    {"schema", record_schema, 1, 0, 0},   {"repair", record_repair, 2, 2, 1},
    {"merge", record_merge, 2, 0, 1},     {"split", record_split, 2, 2, 1},
    {"index", record_index, 1, 0, 0},     {"shuffle", record_shuffle, 2, 0, 1},
    {"convert", record_convert, 2, 2, 1},
};

static int run_on_sources(record_command *run, struct record_options *options, int target_count)
{
    struct sources sources = {0};
    int status = find_sources(&sources, options, target_count);
    if (status == 0)
        status = run(options);
    if (status == 0 && sources.has_failed)
        status = 1;
    clear_sources(&sources);
    return status;
}

static int show_usage(void)
{
    fputs(usage, stdout);
    return 0;
}

int run_record(int argc, char **argv)
{
    struct record_options options = {.type = TFOS_RECORD_EXAMPLE};
    int option, status;
    if (argc < 1)
        return refuse("%s is missing", "a command");
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "help") == 0)
        return show_usage();
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[0], commands[i].name) != 0)
            continue;
        while ((option = getopt_long(argc, argv, ":n:", long_options, NULL)) != -1) {
            if (option == 'h')
                return show_usage();
            if ((status = read_option(option, argv[optind - 1], optarg, &options)) != 0)
                return status;
        }
        options.files = (const char *const *)(argv + optind);
        options.file_count = argc - optind;
        if (options.file_count < commands[i].least_files)
            return refuse("%s: a file is missing", commands[i].name);
        if (commands[i].most_files > 0 && options.file_count > commands[i].most_files)
            return refuse("there are more files than it takes, from \"%s\" on",
                          options.files[commands[i].most_files]);
        return run_on_sources(commands[i].run, &options, commands[i].target_count);
    }
    return refuse("there is no command \"%s\"", argv[0]);
}
