// SPDX-License-Identifier: Apache-2.0
// tfos record cat, head and schema: what looks into records. Each record is shown by a schema of
// its own, so that a pipe needs to be read only once.
#include "arrow/arrow.h"
#include "commands.h"
#include "record_files.h"
#include "terminal.h"
#include "value_text.h"

static enum tfos_status decode(const struct ArrowSchema *schema, enum tfos_record_type type,
                               struct tfos_view record, struct ArrowArray *out,
                               struct tfos_error *err)
{
    const struct tfos_example_decoder_options options = {.type = type};
    struct tfos_example_decoder *decoder = NULL;
    size_t appended;
    enum tfos_status status = tfos_example_decoder_open(schema, &options, &decoder, err);
    if (status == TFOS_OK)
        status = tfos_example_decoder_append(decoder, &record, 1, &appended, err);
    if (status == TFOS_OK)
        status = tfos_example_decoder_take(decoder, out, err);
    tfos_example_decoder_close(decoder);
    return status;
}

static enum tfos_status find_schema(enum tfos_record_type type, struct tfos_view record,
                                    struct ArrowSchema *out, struct tfos_error *err)
{
    struct tfos_schema_inference *inference = NULL;
    size_t seen;
    enum tfos_status status = tfos_schema_inference_open(type, &inference, err);
    if (status == TFOS_OK)
        status = tfos_schema_inference_append(inference, &record, 1, &seen, err);
    if (status == TFOS_OK)
        status = tfos_schema_inference_schema(inference, out, err);
    tfos_schema_inference_close(inference);
    return status;
}

static enum tfos_status make_bytes_schema(struct ArrowSchema *out, struct tfos_error *err)
{
    struct tfos__arrow_type binary = tfos__arrow_type_of(TFOS__ARROW_BINARY, 32, 0);
    enum tfos_status status = tfos__arrow_schema_init_struct(out, 1, err);
    return status == TFOS_OK ? tfos__arrow_schema_init(out->children[0], binary, "bytes", 0, err)
                             : status;
}

static enum tfos_status print_record(enum tfos_record_type type, struct tfos_view record,
                                     struct tfos_error *err)
{
    struct ArrowSchema schema = {0};
    struct ArrowArray batch;
    enum tfos_status status = type == TFOS_RECORD_BYTES ? make_bytes_schema(&schema, err)
                                                        : find_schema(type, record, &schema, err);
    if (status == TFOS_OK)
        status = decode(&schema, type, record, &batch, err);
    if (status == TFOS_OK) {
        print_json(value_to_json(&schema, &batch, 0));
        batch.release(&batch);
    }
    tfos__arrow_schema_release(&schema);
    return status;
}

static enum tfos_status print_records(const struct record_options *options, uint64_t limit,
                                      struct tfos_record_reader *reader, struct tfos_error *err)
{
    for (uint64_t left = limit; limit == 0 || left > 0; left--) {
        struct tfos_view record;
        enum tfos_status status = tfos_record_reader_next(reader, &record, err);
        if (status == TFOS_OK) {
            status = print_record((enum tfos_record_type)options->type, record, err);
            if (status == TFOS_CORRUPT)
                status = tfos_record_reader_reject(reader, record, err);
        }
        if (status != TFOS_OK || ferror(stdout)) // which main() reports
            return status;
    }
    return TFOS_OK;
}

static int print_files(const struct record_options *options, uint64_t limit)
{
    int result = 0;
    for (int i = 0; i < options->file_count; i++) {
        struct tfos_error err;
        struct tfos_record_reader *reader = NULL;
        struct tfos_record_reader_options reading = reader_options(options, options->files[i]);
        struct tfos_stream *stream = open_input(options->files[i]);
        if (!stream) {
            result = 1;
            continue;
        }
        enum tfos_status status = tfos_record_reader_open(stream, &reading, &reader, &err);
        if (status == TFOS_OK)
            status = print_records(options, limit, reader, &err);
        if (status < 0)
            result = say_error(&err);
        tfos_record_reader_close(reader);
        tfos_stream_close(stream);
    }
    return result;
}

int record_cat(const struct record_options *options)
{
    return print_files(options, options->limit);
}

int record_head(const struct record_options *options)
{
    return print_files(options, options->limit > 0 ? options->limit : 10);
}

static int print_schema(const struct tfos_schema_inference *inference, bool is_json)
{
    struct tfos_error err;
    struct ArrowSchema schema;
    char *json = NULL, type[TFOS_TYPE_TEXT_SIZE];
    if (is_json) {
        if (tfos_schema_inference_save(inference, &json, &err) < 0)
            return say_error(&err);
        puts(json);
        tfos_free(json);
        return 0;
    }
    if (tfos_schema_inference_schema(inference, &schema, &err) < 0)
        return say_error(&err);
    for (int64_t i = 0; i < schema.n_children; i++)
        printf("%s %s\n", schema.children[i]->name,
               tfos_arrow_type_text(schema.children[i], TFOS_TYPE_NAMES_SPARK, type, sizeof(type)));
    schema.release(&schema);
    return 0;
}

int record_schema(const struct record_options *options)
{
    struct tfos_error err;
    struct tfos_schema_inference *inference = NULL;
    int result = 0;
    if (tfos_schema_inference_open((enum tfos_record_type)options->type, &inference, &err) < 0)
        return say_error(&err);
    for (int i = 0; result == 0 && i < options->file_count; i++) {
        struct tfos_record_reader_options reading = reader_options(options, options->files[i]);
        struct tfos_stream *stream = open_input(options->files[i]);
        uint64_t seen;
        if (!stream)
            result = 1;
        else if (tfos_schema_inference_read(inference, stream, &reading, options->limit, &seen,
                                            &err) < 0)
            result = say_error(&err);
        tfos_stream_close(stream);
    }
    if (result == 0)
        result = print_schema(inference, options->is_json);
    tfos_schema_inference_close(inference);
    return result;
}
