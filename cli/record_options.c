// SPDX-License-Identifier: Apache-2.0
#include "record_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "manual.h"
#include "terminal.h"

/// A text that means a number.
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

enum kind { FLAG, TEXT, NUMBER, CHOICE };

#define FIELD(name) offsetof(struct record_options, name)

static const struct rule {
    const char *name, *argument;
    enum kind kind;
    size_t field; ///< a bool, const char *, uint64_t or int
    const char *help;
    const char *values; ///< described, for the help
    uint64_t least, most;
    const struct choice *choices;
} rules[] = {
    {"number", "=N", NUMBER, FIELD(limit),
     "see above; cat, schema: only the first N records of each file", "a number from 1 on", 1,
     1u << 30, NULL},
    {"type", "=TYPE", CHOICE, FIELD(type), "of records: example (default), sequence, bytes",
     "example, sequence or bytes", 0, 0, types},
    {"skip-damaged", "", FLAG, FIELD(skips_damage),
     "skip what is damaged, and report it, instead of failing", NULL, 0, 0, NULL},
    {"compress", "=NAME", CHOICE, FIELD(write_compression),
     "of what is written: gzip, zlib, none; default: by the ending .gz",
     "none, gzip or zlib, which TensorFlow can read", 0, 0, compressions},
    {"max-record-size", "=N", NUMBER, FIELD(max_record_size),
     "bytes; a larger one counts as damage (1 GiB)", "a number of bytes", 1, INT64_MAX, NULL},
    {"json", "", FLAG, FIELD(is_json), "results as JSON", NULL, 0, 0, NULL},
    {"seed", "=N", NUMBER, FIELD(seed), "shuffle: the same order again", "a number", 0, UINT64_MAX,
     NULL},
    {"memory", "=N", NUMBER, FIELD(memory),
     "shuffle: bytes of records to hold (256 MiB); the rest waits in TMPDIR", "a number of bytes",
     1, INT64_MAX, NULL},
    {"from", "=FORMAT", TEXT, FIELD(from),
     "convert: tfrecord, csv, json, parquet, arrow, whatever the names", NULL, 0, 0, NULL},
    {"to", "=FORMAT", TEXT, FIELD(to), "convert: likewise, of what is written", NULL, 0, 0, NULL},
    {"schema", "=COLUMNS", TEXT, FIELD(schema),
     "convert: \"NAME TYPE, ...\", types as schema prints them; default: found in the file", NULL,
     0, 0, NULL},
    {"no-header", "", FLAG, FIELD(has_no_header), "convert: CSV without a line of names", NULL, 0,
     0, NULL},
    {"exact", "", FLAG, FIELD(is_exact),
     "convert: refuse numbers that no float is, instead of rounding them", NULL, 0, 0, NULL},
    {"allow-rounding", "", FLAG, FIELD(allow_rounding),
     "convert: report only how many were rounded", NULL, 0, 0, NULL},
};

#define RULE_COUNT (sizeof(rules) / sizeof(rules[0]))
#define FIRST_CODE 256 // of getopt's, behind all characters

void record_options_print(FILE *out)
{
    char left[64];
    for (size_t i = 0; i < RULE_COUNT; i++) {
        snprintf(left, sizeof(left), "%s--%s%s", i == 0 ? "-n, " : "    ", rules[i].name,
                 rules[i].argument);
        fprintf(out, "  %-27s%s\n", left, rules[i].help);
    }
}

bool record_option_entry(size_t index, struct option_entry *entry)
{
    if (index >= RULE_COUNT)
        return false;
    const struct rule *rule = &rules[index];
    *entry = (struct option_entry){
        .name = rule->name,
        .argument = rule->argument,
        .help = rule->help,
        .takes_value = rule->kind != FLAG,
    };
    size_t count = 0;
    for (const struct choice *choice = rule->choices; choice && choice->text; choice++)
        if (!isupper((unsigned char)choice->text[0]) && count < OPTION_VALUES)
            entry->values[count++] = choice->text;
    return true;
}

int refuse_record(const char *format, const char *argument)
{
    fputs("tfos record: ", stderr);
    fprintf(stderr, format, argument);
    fputs("; tfos record --help says how it is used\n", stderr);
    return EXIT_USAGE;
}

static bool read_number(const struct rule *rule, const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' &&
           *value >= rule->least && *value <= rule->most;
}

static bool choose(const struct choice *choices, const char *text, int *value)
{
    while (choices->text && strcmp(choices->text, text) != 0)
        choices++;
    if (choices->text)
        *value = choices->value;
    return choices->text;
}

// 0, or the exit status.
static int read_value(const struct rule *rule, const char *text, struct record_options *options)
{
    void *field = (char *)options + rule->field;
    char format[128];
    bool is_good = true;
    if (rule->kind == FLAG)
        *(bool *)field = true;
    else if (rule->kind == TEXT)
        *(const char **)field = text;
    else if (rule->kind == NUMBER)
        is_good = read_number(rule, text, field);
    else
        is_good = choose(rule->choices, text, field);
    options->has_seed |= field == &options->seed;
    snprintf(format, sizeof(format), "--%s takes %s, not \"%%s\"", rule->name,
             rule->values ? rule->values : "");
    return is_good ? 0 : refuse_record(format, text);
}

int record_options_parse(struct record_options *options, int argc, char **argv, bool *asks_help)
{
    struct option known[RULE_COUNT + 2] = {{"help", no_argument, NULL, 'h'}};
    int code, status = 0;
    *options = (struct record_options){.type = TFOS_RECORD_EXAMPLE};
    *asks_help = false;
    for (size_t i = 0; i < RULE_COUNT; i++)
        known[i + 1] =
            (struct option){rules[i].name, rules[i].kind == FLAG ? no_argument : required_argument,
                            NULL, FIRST_CODE + (int)i};
    while (status == 0 && (code = getopt_long(argc, argv, ":n:", known, NULL)) != -1) {
        if (code == 'h') {
            *asks_help = true;
            return 0;
        }
        if (code == ':')
            status = refuse_record("%s takes a value", argv[optind - 1]);
        else if (code == '?')
            status = refuse_record("does not know %s", argv[optind - 1]);
        else
            status = read_value(&rules[code == 'n' ? 0 : code - FIRST_CODE], optarg, options);
    }
    options->files = (const char *const *)(argv + optind);
    options->file_count = argc - optind;
    return status;
}

struct tfos_record_reader_options reader_options(const struct record_options *options,
                                                 const char *path)
{
    return (struct tfos_record_reader_options){
        .compression = options->compression,
        .mode = options->skips_damage ? TFOS_RECORD_SKIP_RECORD : TFOS_RECORD_STRICT,
        .max_record_size = options->max_record_size,
        .on_damage = say_damage,
        .name = strcmp(path, "-") == 0 ? "the standard input" : path,
    };
}

int choose_compression(const struct record_options *options, const char *path,
                       enum tfos_compression *compression)
{
    struct tfos_error err;
    *compression = (enum tfos_compression)options->write_compression;
    if (*compression == TFOS_COMPRESSION_AUTO &&
        tfos_record_compression_of_name(path, compression, &err) < 0)
        return say_error(&err);
    return 0;
}
