// SPDX-License-Identifier: Apache-2.0
// tfos record convert: between TFRecord files of Examples, comma-separated values and lines of
// JSON; Parquet and Arrow IPC are for columnar_conversion.c.
#include "columnar_conversion.h"
#include "progress.h"
#include "record_outputs.h"
#include "table_text.h"
#include "temporary_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_ROWS 4096
#define BATCH_SIZE (16u << 20) // bytes, about

enum format {
    FORMAT_TFRECORD,
    FORMAT_CSV,
    FORMAT_JSON,
    FORMAT_PARQUET,
    FORMAT_ARROW,
    FORMAT_REFUSED
};

static const struct {
    const char *name; ///< for --from and --to, and as the ending of a file
    enum format format;
} formats[] = {
    {"tfrecord", FORMAT_TFRECORD}, {"csv", FORMAT_CSV},      {"json", FORMAT_JSON},
    {"jsonl", FORMAT_JSON},        {"ndjson", FORMAT_JSON},  {"parquet", FORMAT_PARQUET},
    {"arrow", FORMAT_ARROW},       {"ipc", FORMAT_ARROW},    {"feather", FORMAT_ARROW},
    {"orc", FORMAT_REFUSED},       {"avro", FORMAT_REFUSED},
};

/// By enum format.
static const char *const columnar_names[] = {"tfrecord", NULL, NULL, "parquet", "arrow"};

static const struct table_format *const table_formats[] = {NULL, &csv_format, &json_format};

// The format of a name: FORMAT_TFRECORD where it is none of another's.
static enum format find_format(const char *name, size_t size, bool *is_known)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strlen(formats[i].name) == size && strncmp(formats[i].name, name, size) == 0) {
            *is_known = true;
            return formats[i].format;
        }
    *is_known = false;
    return FORMAT_TFRECORD;
}

// The exit status.
static int choose_format(const char *option, const char *said, const char *path,
                         enum format *format)
{
    bool is_known;
    size_t size = strlen(path);
    bool is_gzip = size > 3 && strcmp(path + size - 3, ".gz") == 0;
    if (is_gzip)
        size -= 3;
    size_t begin = size;
    while (begin > 0 && path[begin - 1] != '.' && path[begin - 1] != '/')
        begin--;
    *format = said ? find_format(said, strlen(said), &is_known)
                   : find_format(path + begin, size - begin, &is_known);
    if (*format == FORMAT_REFUSED) {
        fprintf(stderr,
                "tfos record: convert: %s is none of its formats: tfrecord, csv, json, parquet, "
                "arrow; in Python tensorflowonspark.tfrecord and pyarrow read and write that one\n",
                said ? said : path);
        return 2;
    }
    if (!said && is_gzip && (*format == FORMAT_PARQUET || *format == FORMAT_ARROW)) {
        fprintf(stderr,
                "tfos record: convert: %s: Parquet and Arrow files are compressed within, not by "
                "gzip\n",
                path);
        return 2;
    }
    if (said && !is_known) {
        fprintf(stderr, "tfos record: %s takes tfrecord, csv, json, parquet or arrow, not \"%s\"\n",
                option, said);
        return 2;
    }
    return 0;
}

static void tell_damage(void *context, const struct tfos_record_damage *damage)
{
    (void)context;
    progress_end();
    fprintf(stderr, "tfos: %s\n", damage->message);
}

/// Text on its way into records.
struct encoding {
    struct table_input input;
    const struct table_format *format;
    struct tfos_stream *stream;
    struct tfos_example_writer *writer;
    uint64_t row_count;
};

static int write_rows(struct encoding *encoding)
{
    struct tfos_error err;
    struct columns *columns = encoding->input.columns;
    if (columns->rows.length > 0 &&
        tfos_example_writer_append(encoding->writer, columns_batch(columns), &err) < 0)
        return say_error(&err);
    encoding->row_count += (uint64_t)columns->rows.length;
    tfos__arrow_builder_truncate(&columns->rows, 0);
    return 0;
}

static int encode_rows(struct encoding *encoding)
{
    struct tfos_error err;
    struct columns *columns = encoding->input.columns;
    enum text_outcome outcome = TEXT_ROW;
    int status = 0;
    while (status == 0 && outcome == TEXT_ROW) {
        outcome = encoding->format->next(&encoding->input);
        if (columns->rows.length == BATCH_ROWS ||
            tfos__arrow_builder_size(&columns->rows) > BATCH_SIZE || outcome == TEXT_OVER)
            status = write_rows(encoding);
        progress_tell("converted", encoding->row_count, 0, encoding->input.text.name);
    }
    progress_end();
    if (status != 0 || outcome == TEXT_WRONG)
        return 1;
    return tfos_example_writer_finish(encoding->writer, &err) < 0 ? say_error(&err) : 0;
}

// Finds what the columns are, and begins to read them.
static int begin_encoding(struct encoding *encoding, const struct record_options *options)
{
    struct table_input *input = &encoding->input;
    int status = 0;
    if (!input->has_schema) {
        status = encoding->format->survey(input);
        for (size_t i = 0; i < input->columns->count; i++) // of which no value was seen
            column_widen(&input->columns->items[i], input->columns->items[i].kind == COLUMN_NOTHING
                                                        ? COLUMN_TEXT
                                                        : COLUMN_NOTHING);
        if (status == 0)
            status = text_input_rewind(&input->text);
    } else if (!columns_parse(input->columns, options->schema)) {
        return 2;
    }
    if (status == 0)
        columns_describe(input->columns);
    return status == 0 ? encoding->format->begin(input) : status;
}

static int open_writer(struct encoding *encoding, const struct record_options *options)
{
    struct tfos_error err;
    const char *path = options->files[1];
    struct tfos_example_writer_options writing = {
        .example = {.type = options->type, .type_names = TFOS_TYPE_NAMES_SPARK}};
    if (choose_compression(options, path, &writing.record.compression) != 0)
        return 1;
    encoding->stream = open_output(path);
    if (!encoding->stream)
        return 1;
    if (tfos_example_writer_open(encoding->stream, &encoding->input.columns->schema, &writing,
                                 &encoding->writer, &err) < 0)
        return say_error(&err);
    return 0;
}

// Says how much was written and, by column, rounded: as columnar_file.py does.
static void say_written(uint64_t row_count, const struct columns *columns, bool is_brief)
{
    uint64_t rounded = 0, infinite = 0;
    const char *before = " (column ";
    bool is_told = false;
    for (size_t i = 0; i < columns->count; i++) {
        rounded += columns->items[i].rounded;
        infinite += columns->items[i].infinite;
    }
    fprintf(stderr, "%llu records written; %llu numbers rounded", (unsigned long long)row_count,
            (unsigned long long)rounded);
    for (size_t i = 0; i < columns->count && !is_brief; i++)
        if (columns->items[i].rounded > 0) {
            fprintf(stderr, "%s%s: %llu", before, columns->items[i].name,
                    (unsigned long long)columns->items[i].rounded);
            before = ", ";
            is_told = true;
        }
    if (is_told && infinite > 0)
        fprintf(stderr, "; %llu became infinite", (unsigned long long)infinite);
    fputs(is_told ? "); --exact refuses them\n" : "\n", stderr);
}

static int text_to_records(const struct record_options *options, const struct table_format *format)
{
    struct columns columns = {0};
    struct encoding encoding = {.format = format};
    struct table_input *input = &encoding.input;
    *input = (struct table_input){.columns = &columns,
                                  .has_schema = options->schema != NULL,
                                  .has_header = !options->has_no_header,
                                  .is_exact = options->is_exact};
    int status = text_input_open(&input->text, options->files[0], !input->has_schema);
    if (status == 0)
        status = begin_encoding(&encoding, options);
    if (status == 0)
        status = open_writer(&encoding, options);
    if (status == 0)
        status = encode_rows(&encoding);
    if (status == 0)
        say_written(encoding.row_count, &columns, options->allow_rounding);
    tfos_example_writer_close(encoding.writer);
    tfos_stream_close(encoding.stream);
    text_input_close(&input->text);
    free(input->line.data);
    free(input->cells.data);
    free(input->values.data);
    free(input->order);
    columns_clear(&columns);
    return status;
}

/// Records on their way into text.
struct decoding {
    const struct record_options *options;
    struct tfos_record_reader_options reading;
    const struct table_format *format;
    struct tfos_stream *stream;
    struct text_output output;
    struct ArrowSchema schema; ///< owned
};

static int survey_records(struct decoding *decoding)
{
    struct tfos_error err;
    struct tfos_schema_inference *survey = NULL;
    struct tfos_stream *stream = decoding->stream;
    uint64_t seen;
    enum tfos_status status = tfos_schema_inference_open(decoding->options->type, &survey, &err);
    if (status == TFOS_OK)
        status = tfos_schema_inference_read(survey, stream, &decoding->reading, 0, &seen, &err);
    if (status == TFOS_OK)
        status = tfos_schema_inference_schema(survey, &decoding->schema, &err);
    if (status == TFOS_OK && stream->seek)
        status = stream->seek(stream, 0, &err);
    tfos_schema_inference_close(survey);
    return status < 0 ? say_error(&err) : 0;
}

static int say_schema(struct decoding *decoding)
{
    struct tfos_error err;
    struct columns columns = {0};
    int status = columns_parse(&columns, decoding->options->schema) ? 0 : 2;
    if (status == 0 &&
        tfos_arrow_schema_copy(columns_describe(&columns), &decoding->schema, &err) < 0)
        status = say_error(&err);
    columns_clear(&columns);
    return status;
}

static int write_batch(struct decoding *decoding, const struct ArrowArray *batch)
{
    int status = 0;
    for (int64_t row = 0; row < batch->length && status == 0; row++) {
        decoding->format->write_row(&decoding->output.text, &decoding->schema, batch, row);
        status = text_output_flush(&decoding->output);
    }
    return status;
}

static int decode_records(struct decoding *decoding)
{
    struct tfos_error err;
    struct ArrowArray batch;
    struct tfos_example_reader *reader = NULL;
    struct tfos_example_reader_options reading = {.record = decoding->reading,
                                                  .type = decoding->options->type,
                                                  .type_names = TFOS_TYPE_NAMES_SPARK};
    enum tfos_status status =
        tfos_example_reader_open(decoding->stream, &decoding->schema, &reading, &reader, &err);
    int result = 0;
    decoding->format->write_header(&decoding->output.text, &decoding->schema);
    while (status == TFOS_OK && result == 0) {
        status = tfos_example_reader_next(reader, &batch, &err);
        if (status != TFOS_OK)
            break;
        result = write_batch(decoding, &batch);
        batch.release(&batch);
        struct tfos_record_counts counts = tfos_example_reader_get_counts(reader);
        progress_tell("converted", counts.records, counts.bytes, reading.record.name);
    }
    progress_end();
    if (status < 0)
        result = say_error(&err);
    if (result == 0)
        result = text_output_finish(&decoding->output);
    if (result == 0)
        fprintf(stderr, "%llu records written\n",
                (unsigned long long)tfos_example_reader_get_counts(reader).records);
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
        .reading = reader_options(options, options->files[0]),
        .format = format,
        .stream = open_records(options, &fd),
    };
    decoding.reading.on_damage = tell_damage;
    int status = decoding.stream ? 0 : 1;
    if (status == 0)
        status = options->schema ? say_schema(&decoding) : survey_records(&decoding);
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

int record_convert(const struct record_options *options)
{
    enum format from, to;
    if (options->file_count != 2) {
        fprintf(stderr,
                "tfos record: convert: it takes one file, and there are %d, from %s to %s: \"tfos "
                "record merge\" makes one of them\n",
                options->file_count - 1, options->files[0],
                options->files[options->file_count - 2]);
        return 2;
    }
    int status = choose_format("--from", options->from, options->files[0], &from);
    if (status == 0)
        status = choose_format("--to", options->to, options->files[1], &to);
    if (status != 0)
        return status;
    if ((from == FORMAT_TFRECORD) == (to == FORMAT_TFRECORD)) {
        fprintf(stderr, "tfos record: convert: one of %s and %s is to be a TFRecord file%s\n",
                options->files[0], options->files[1],
                from == FORMAT_TFRECORD ? ", and the other none: --from and --to say what they are"
                                        : "");
        return 2;
    }
    if (options->is_exact && options->allow_rounding) {
        fputs("tfos record: convert: --exact and --allow-rounding do not go together\n", stderr);
        return 2;
    }
    if (options->has_no_header && (from != FORMAT_CSV || !options->schema)) {
        fputs("tfos record: --no-header is for CSV that is read, with --schema\n", stderr);
        return 2;
    }
    enum format other = to == FORMAT_TFRECORD ? from : to;
    if (other == FORMAT_PARQUET || other == FORMAT_ARROW)
        return convert_columnar(options, columnar_names[from], columnar_names[to]);
    return to == FORMAT_TFRECORD ? text_to_records(options, table_formats[from])
                                 : records_to_text(options, table_formats[to]);
}
