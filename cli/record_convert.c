// SPDX-License-Identifier: Apache-2.0
// tfos record convert: between TFRecord files of Examples, comma-separated values and lines of
// JSON; Parquet and Arrow IPC are for columnar_conversion.c.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "record_files.h"
#include "table.h"
#include "terminal.h"

#define BATCH_ROWS 4096
#define BATCH_SIZE (16u << 20) // bytes, about

// ---- text into records

struct encoding {
    const struct record_options *options;
    const struct table_format *table_format;
    struct table table;
    struct tfos_stream *stream;
    struct tfos_example_writer *writer;
    uint64_t row_count;
};

// Finds what the columns are, and begins to read them. The exit status.
static int begin_encoding(struct encoding *encoding)
{
    struct table *table = &encoding->table;
    struct columns *columns = &table->columns;
    enum tfos_status (*begin)(struct table * table) = encoding->table_format->begin;
    enum tfos_status status = TFOS_OK;
    if (table->has_schema) {
        if (!columns_parse(columns, encoding->options->schema))
            return EXIT_USAGE;
    } else {
        status = begin ? begin(table) : TFOS_OK;
        while (status == TFOS_OK)
            status = encoding->table_format->next(table, true);
        if (status < 0 || text_input_rewind(&table->text) != 0)
            return 1;
        for (size_t i = 0; i < columns->count; i++)
            if (columns->items[i].kind == TFOS__ARROW_NULL)
                columns->items[i].kind = TFOS__ARROW_TEXT;
    }
    columns_describe(columns);
    return begin && begin(table) < 0 ? 1 : 0;
}

static int open_writer(struct encoding *encoding)
{
    struct tfos_error err;
    const char *path = encoding->options->files[1];
    struct tfos_example_writer_options writing = {
        .example = {.type = (enum tfos_record_type)encoding->options->type,
                    .type_names = TFOS_TYPE_NAMES_SPARK}};
    if (choose_compression(encoding->options, path, &writing.record.compression) != 0)
        return 1;
    encoding->stream = open_output(path);
    if (!encoding->stream)
        return 1;
    if (tfos_example_writer_open(encoding->stream, &encoding->table.columns.schema, &writing,
                                 &encoding->writer, &err) < 0)
        return say_error(&err);
    return 0;
}

static enum tfos_status write_rows(struct encoding *encoding, struct tfos_error *err)
{
    struct columns *columns = &encoding->table.columns;
    enum tfos_status status = TFOS_OK;
    if (columns->rows.length > 0)
        status = tfos_example_writer_append(encoding->writer, columns_show(columns), err);
    encoding->row_count += (uint64_t)columns->rows.length;
    tfos__arrow_builder_truncate(&columns->rows, 0);
    return status;
}

static int encode_rows(struct encoding *encoding)
{
    struct tfos_error err;
    struct table *table = &encoding->table;
    const struct tfos__arrow_builder *rows = &table->columns.rows;
    enum tfos_status status = TFOS_OK, outcome = TFOS_OK; // of writing, of reading
    while (status == TFOS_OK && outcome == TFOS_OK) {
        outcome = encoding->table_format->next(table, false);
        if (rows->length == BATCH_ROWS || tfos__arrow_builder_size(rows) > BATCH_SIZE ||
            outcome == TFOS_END)
            status = write_rows(encoding, &err);
        progress_show("converted", encoding->row_count, 0, table->text.name);
    }
    progress_end();
    if (status == TFOS_OK && outcome == TFOS_END)
        status = tfos_example_writer_finish(encoding->writer, &err);
    if (status < 0)
        return say_error(&err);
    return outcome < 0 ? 1 : 0; // after an error message
}

// Says how much was written and, by column, rounded: as columnar_file.py does.
static void print_written(const struct encoding *encoding)
{
    const struct columns *columns = &encoding->table.columns;
    unsigned long long rounded = 0, infinite = 0;
    bool is_brief = encoding->options->allow_rounding;
    const char *before = " (column ";
    for (size_t i = 0; i < columns->count; i++) {
        rounded += columns->items[i].rounded;
        infinite += columns->items[i].infinite;
    }
    fprintf(stderr, "%llu records written; %llu numbers rounded",
            (unsigned long long)encoding->row_count, rounded);
    is_brief = is_brief || rounded == 0;
    for (size_t i = 0; i < columns->count && !is_brief; i++)
        if (columns->items[i].rounded > 0) {
            fprintf(stderr, "%s%s: %llu", before, columns->items[i].name,
                    (unsigned long long)columns->items[i].rounded);
            before = ", ";
        }
    if (!is_brief && infinite > 0)
        fprintf(stderr, "; %llu became infinite", infinite);
    fputs(is_brief ? "\n" : "); --exact refuses them\n", stderr);
}

static int text_to_records(const struct record_options *options, const struct table_format *format)
{
    struct encoding encoding = {.options = options,
                                .table_format = format,
                                .table = {.columns = {.is_exact = options->is_exact},
                                          .has_schema = options->schema,
                                          .has_header = !options->has_no_header}};
    struct table *table = &encoding.table;
    int status = text_input_open(&table->text, options->files[0], !table->has_schema);
    if (status == 0)
        status = begin_encoding(&encoding);
    if (status == 0)
        status = open_writer(&encoding);
    if (status == 0)
        status = encode_rows(&encoding);
    if (status == 0)
        print_written(&encoding);
    tfos_example_writer_close(encoding.writer);
    tfos_stream_close(encoding.stream);
    text_input_close(&table->text);
    free(table->line.data);
    free(table->cells.data);
    free(table->order);
    columns_clear(&table->columns);
    return status;
}

// ---- records into text

struct decoding {
    const struct record_options *options;
    const struct table_format *table_format;
    struct tfos_record_reader_options reading;
    struct tfos_stream *stream;
    struct text_output output;
    struct ArrowSchema schema; ///< owned
};

// Finds what the columns are. The exit status.
static int find_columns(struct decoding *decoding)
{
    struct tfos_error err;
    struct tfos_schema_inference *inference = NULL;
    struct tfos_stream *stream = decoding->stream;
    uint64_t seen;
    enum tfos_status status = tfos_schema_inference_open(
        (enum tfos_record_type)decoding->options->type, &inference, &err);
    if (status == TFOS_OK)
        status = tfos_schema_inference_read(inference, stream, &decoding->reading, 0, &seen, &err);
    if (status == TFOS_OK)
        status = tfos_schema_inference_schema(inference, &decoding->schema, &err);
    if (status == TFOS_OK && stream->seek)
        status = stream->seek(stream, 0, &err);
    tfos_schema_inference_close(inference);
    return status < 0 ? say_error(&err) : 0;
}

// Takes the columns of --schema. The exit status.
static int parse_columns(struct decoding *decoding)
{
    struct columns columns = {0};
    int status = columns_parse(&columns, decoding->options->schema) ? 0 : EXIT_USAGE;
    if (status == 0) {
        columns_describe(&columns);
        decoding->schema = columns.schema;
        columns.schema = (struct ArrowSchema){0};
    }
    columns_clear(&columns);
    return status;
}

static int write_batch(struct decoding *decoding, const struct ArrowArray *batch)
{
    int status = 0;
    for (int64_t row = 0; row < batch->length && status == 0; row++) {
        decoding->table_format->write_row(&decoding->output.text, &decoding->schema, batch, row);
        status = text_output_flush(&decoding->output);
    }
    return status;
}

static int decode_records(struct decoding *decoding)
{
    struct tfos_error err;
    struct ArrowArray batch;
    struct tfos_record_counts counts = {0};
    struct tfos_example_reader *reader = NULL;
    struct tfos_example_reader_options reading = {
        .record = decoding->reading,
        .type = (enum tfos_record_type)decoding->options->type,
        .type_names = TFOS_TYPE_NAMES_SPARK};
    enum tfos_status status =
        tfos_example_reader_open(decoding->stream, &decoding->schema, &reading, &reader, &err);
    int result = 0;
    if (decoding->table_format->write_header)
        decoding->table_format->write_header(&decoding->output.text, &decoding->schema);
    while (status == TFOS_OK && result == 0) {
        status = tfos_example_reader_next(reader, &batch, &err);
        if (status != TFOS_OK)
            break;
        result = write_batch(decoding, &batch);
        batch.release(&batch);
        counts = tfos_example_reader_get_counts(reader);
        progress_show("converted", counts.records, counts.bytes, reading.record.name);
    }
    progress_end();
    if (status < 0)
        result = say_error(&err);
    if (result == 0)
        result = text_output_finish(&decoding->output);
    if (result == 0)
        fprintf(stderr, "%llu records written\n", (unsigned long long)counts.records);
    tfos_example_reader_close(reader);
    return result;
}

// What comes through a pipe is kept where it is to be read twice, for its columns.
static struct tfos_stream *open_records(const struct record_options *options, int *fd)
{
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    if (strcmp(options->files[0], "-") != 0 || options->schema)
        return open_input(options->files[0]);
    *fd = open_seekable_input();
    if (*fd >= 0 && tfos_stream_open_fd(*fd, &stream, &err) < 0)
        say_error(&err);
    return stream;
}

static int records_to_text(const struct record_options *options, const struct table_format *format)
{
    int fd = -1;
    struct decoding decoding = {
        .options = options,
        .table_format = format,
        .reading = reader_options(options, options->files[0]),
        .stream = open_records(options, &fd),
    };
    int status = decoding.stream ? 0 : 1;
    if (status == 0)
        status = options->schema ? parse_columns(&decoding) : find_columns(&decoding);
    if (status == 0)
        status = text_output_open(&decoding.output, options, options->files[1]);
    if (status == 0)
        status = decode_records(&decoding);
    text_output_close(&decoding.output);
    tfos__arrow_schema_release(&decoding.schema);
    tfos_stream_close(decoding.stream);
    if (fd >= 0)
        close(fd);
    return status;
}

// ---- formats

enum kind { RECORDS, TABLE, COLUMNAR, REFUSED };

static const struct form {
    const char *ending; ///< of a file; for --from and --to too
    enum kind kind;
    const struct table_format *table;
    const char *columnar; ///< its name in columnar_file.py
} forms[] = {
    {"tfrecord", RECORDS, NULL, "tfrecord"}, {"csv", TABLE, &csv_format, NULL},
    {"json", TABLE, &json_format, NULL},     {"jsonl", TABLE, &json_format, NULL},
    {"ndjson", TABLE, &json_format, NULL},   {"parquet", COLUMNAR, NULL, "parquet"},
    {"arrow", COLUMNAR, NULL, "arrow"},      {"ipc", COLUMNAR, NULL, "arrow"},
    {"feather", COLUMNAR, NULL, "arrow"},    {"orc", REFUSED, NULL, NULL},
    {"avro", REFUSED, NULL, NULL},
};

// NULL: there is none of that name.
static const struct form *find_form(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (strlen(forms[i].ending) == size && strncmp(forms[i].ending, name, size) == 0)
            return &forms[i];
    return NULL;
}

// The format of a file, as the option gives it or by its name: records where that has none of these
// endings. NULL after an error message.
static const struct form *choose_form(const char *option, const char *given, const char *path)
{
    size_t size = strlen(path);
    bool is_gzip = size > 3 && strcmp(path + size - 3, ".gz") == 0;
    size_t begin = size -= is_gzip ? 3 : 0;
    while (begin > 0 && path[begin - 1] != '.' && path[begin - 1] != '/')
        begin--;
    const struct form *form =
        given ? find_form(given, strlen(given)) : find_form(path + begin, size - begin);
    if (form && form->kind == REFUSED)
        fprintf(stderr,
                "tfos record: convert: %s is none of its formats: tfrecord, csv, json, parquet, "
                "arrow; in Python tensorflowonspark.tfrecord and pyarrow read and write that one\n",
                given ? given : path);
    else if (!given && is_gzip && form && form->kind == COLUMNAR)
        fprintf(stderr,
                "tfos record: convert: %s: Parquet and Arrow files are compressed within, not by "
                "gzip\n",
                path);
    else if (given && !form)
        fprintf(stderr, "tfos record: %s takes tfrecord, csv, json, parquet or arrow, not \"%s\"\n",
                option, given);
    else
        return form ? form : &forms[0];
    return NULL;
}

int record_convert(const struct record_options *options)
{
    const char *const *files = options->files;
    if (options->file_count != 2) {
        fprintf(stderr,
                "tfos record: convert: it takes one file, and there are %d, from %s to %s: \"tfos "
                "record merge\" makes one of them\n",
                options->file_count - 1, files[0], files[options->file_count - 2]);
        return EXIT_USAGE;
    }
    const struct form *from = choose_form("--from", options->from, files[0]);
    const struct form *to = from ? choose_form("--to", options->to, files[1]) : NULL;
    if (!to)
        return EXIT_USAGE;
    if ((from->kind == RECORDS) == (to->kind == RECORDS)) {
        fprintf(stderr, "tfos record: convert: one of %s and %s is to be a TFRecord file%s\n",
                files[0], files[1],
                from->kind == RECORDS ? ", and the other none: --from and --to say what they are"
                                      : "");
        return EXIT_USAGE;
    }
    if (options->is_exact && options->allow_rounding) {
        fputs("tfos record: convert: --exact and --allow-rounding do not go together\n", stderr);
        return EXIT_USAGE;
    }
    if (options->has_no_header && (from->table != &csv_format || !options->schema)) {
        fputs("tfos record: --no-header is for CSV that is read, with --schema\n", stderr);
        return EXIT_USAGE;
    }
    if (from->kind == COLUMNAR || to->kind == COLUMNAR)
        return convert_columnar(options, from->columnar, to->columnar);
    return from->table ? text_to_records(options, from->table)
                       : records_to_text(options, to->table);
}
