// SPDX-License-Identifier: Apache-2.0
// No system brings a library in C for Parquet, so this process becomes the Python that the command
// belongs to, in which pyarrow does it: python/tensorflowonspark/columnar_file.py.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "columns.h"
#include "commands.h"
#include "program.h"
#include "record_files.h"
#include "terminal.h"

#define FOR                                                                                        \
    "tfos record: convert: Parquet and Arrow files are for Python with the packages tfos and "     \
    "pyarrow"

/// It ends at once: a thread of pyarrow's that wants a file object when Python is being taken down
/// ends the process in its own way.
static const char code[] =
    "try:\n"
    "    from tensorflowonspark import columnar_file\n"
    "except ImportError as error:\n"
    "    remedy = 'install tfos, of which this command is, for it, or have a python3 in PATH that "
    "'\\\n"
    "        'has it'\n"
    "    if (error.name or '').startswith('pyarrow'):\n"
    "        remedy = sys.executable + ' -m pip install pyarrow'\n"
    "    sys.exit('" FOR ", and %s lacks one: %s: %s' % (sys.executable, error, remedy))\n"
    "os._exit(columnar_file.main(*sys.argv[1:]))\n";

// The exit status.
static int refuse_options(const struct record_options *options, bool is_reading_records)
{
    static const char elsewhere[] = "for other commands";
    static const char reading[] = "for TFRecord files that are read";
    static const char writing[] = "for TFRecord files that are written";
    bool is_writing_records = !is_reading_records;
    const struct {
        const char *name, *place;
        bool is_refused;
    } all[] = {
        {"--number", elsewhere, options->limit > 0},
        {"--json", elsewhere, options->is_json},
        {"--seed", elsewhere, options->has_seed},
        {"--memory", elsewhere, options->memory > 0},
        {"--skip-damaged", reading, options->skips_damage && is_writing_records},
        {"--max-record-size", reading, options->max_record_size > 0 && is_writing_records},
        {"--compress", writing, options->write_compression != 0 && is_reading_records},
        {"--allow-rounding", writing, options->allow_rounding && is_reading_records},
        {"--exact", writing, options->is_exact && is_reading_records},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i].is_refused) {
            fprintf(stderr, "tfos record: convert: %s is %s\n", all[i].name, all[i].place);
            return EXIT_USAGE;
        }
    return 0;
}

// [["name", "array<float>"], ...], or null without --schema. NULL after an error message.
static json_t *describe_columns(const char *text)
{
    struct columns columns = {0};
    char type[TFOS_TYPE_TEXT_SIZE];
    if (!text)
        return json_null();
    json_t *list = columns_parse(&columns, text) ? json_array() : NULL;
    const struct ArrowSchema *schema = list ? columns_describe(&columns) : NULL;
    for (size_t i = 0; list && i < columns.count; i++) {
        tfos_arrow_type_text(schema->children[i], TFOS_TYPE_NAMES_SPARK, type, sizeof(type));
        if (json_array_append_new(list, json_pack("[ss]", columns.items[i].name, type)) != 0) {
            fprintf(stderr, "tfos record: --schema: the name of column %zu is no UTF-8\n", i + 1);
            json_decref(list);
            list = NULL;
        }
    }
    columns_clear(&columns);
    return list;
}

// In the words of tensorflowonspark.tfrecord; for free(). NULL after an error message.
static char *describe(const struct record_options *options, const char *from, const char *to)
{
    static const char *const types[] = {"Example", "SequenceExample", "ByteArray"};
    static const char *const compressions[] = {"none", "none", "gzip", "zlib"};
    enum tfos_compression compression = TFOS_COMPRESSION_NONE;
    json_t *columns = describe_columns(options->schema);
    if (columns && strcmp(to, "tfrecord") == 0 &&
        choose_compression(options, options->files[1], &compression) != 0) {
        json_decref(columns);
        columns = NULL;
    }
    if (!columns)
        return NULL;
    json_t *asked = json_pack(
        "{s:s, s:s, s:o, s:s, s:s, s:s, s:b, s:b, s:I}", "from", from, "to", to, "columns", columns,
        "record_type", types[options->type], "compression", compressions[compression], "on_damage",
        options->skips_damage ? "skip_record" : "error", "allow_rounding", options->allow_rounding,
        "exact", options->is_exact, "max_record_size", (json_int_t)options->max_record_size);
    char *text = check_memory(json_dumps(asked, JSON_COMPACT));
    json_decref(asked);
    return text;
}

// What comes through a pipe is kept where it is to be read twice, for its columns. The exit status.
static int keep_input(void)
{
    int fd = open_seekable_input();
    int status = fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO ? 0 : 1;
    if (fd >= 0)
        close(fd);
    return status;
}

int convert_columnar(const struct record_options *options, const char *from, const char *to)
{
    bool is_reading_records = strcmp(from, "tfrecord") == 0;
    bool is_piped = strcmp(options->files[0], "-") == 0;
    if ((is_piped && strcmp(from, "parquet") == 0) ||
        (strcmp(options->files[1], "-") == 0 && strcmp(to, "parquet") == 0)) {
        fputs("tfos record: convert: Parquet needs a file, as its end says what is in it; Arrow "
              "goes through pipes\n",
              stderr);
        return EXIT_USAGE;
    }
    int status = refuse_options(options, is_reading_records);
    if (status != 0)
        return status;
    char *asked = describe(options, from, to);
    if (!asked)
        return EXIT_USAGE;
    if (is_piped && is_reading_records && !options->schema && options->type != TFOS_RECORD_BYTES)
        status = keep_input();
    char *arguments[] = {(char *)options->files[0], (char *)options->files[1], asked, NULL};
    if (status == 0)
        status = become_python(FOR, code, arguments);
    free(asked);
    return status;
}
