// SPDX-License-Identifier: Apache-2.0
// tfos record cat, head and schema: what looks into records. Each record is shown by a schema of
// its own, so that a pipe needs to be read only once.
#include "record_command.h"

#include "arrow_json.h"
#include "typed_column.h"

#include <stdlib.h>
#include <string.h>

static void tell_damage(void *context, const struct tfos_record_damage *damage)
{
    (void)context;
    fprintf(stderr, "tfos: %s\n", damage->message);
}

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
    struct tfos_schema_inference *survey = NULL;
    size_t seen;
    enum tfos_status status = tfos_schema_inference_open(type, &survey, err);
    if (status == TFOS_OK)
        status = tfos_schema_inference_append(survey, &record, 1, &seen, err);
    if (status == TFOS_OK)
        status = tfos_schema_inference_schema(survey, out, err);
    tfos_schema_inference_close(survey);
    return status;
}

static enum tfos_status print_row(const struct ArrowSchema *schema, const struct ArrowArray *batch,
                                  struct tfos_error *err)
{
    json_t *row = arrow_value_to_json(schema, batch, 0);
    char *text = row ? json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(row);
    if (!text) {
        *err = (struct tfos_error){.message = "record: no memory for a line"};
        return TFOS_NO_MEMORY;
    }
    puts(text);
    free(text);
    return TFOS_OK;
}

static enum tfos_status print_record(enum tfos_record_type type, struct tfos_view record,
                                     struct tfos_error *err)
{
    struct columns plain = {0};
    struct ArrowSchema schema = {0};
    struct ArrowArray batch;
    enum tfos_status status = TFOS_OK;
    if (type == TFOS_RECORD_BYTES) {
        columns_add(&plain, "bytes", 5, COLUMN_BYTES, 0);
        status = tfos_arrow_schema_copy(columns_describe(&plain), &schema, err);
        columns_clear(&plain);
    } else {
        status = find_schema(type, record, &schema, err);
    }
    if (status == TFOS_OK)
        status = decode(&schema, type, record, &batch, err);
    if (status == TFOS_OK) {
        status = print_row(&schema, &batch, err);
        batch.release(&batch);
    }
    tfos__arrow_schema_release(&schema);
    return status;
}

static enum tfos_status print_records(const struct record_options *options,
                                      struct tfos_record_reader *reader, struct tfos_error *err)
{
    for (long left = options->limit; options->limit == 0 || left > 0; left--) {
        struct tfos_view record;
        enum tfos_status status = tfos_record_reader_next(reader, &record, err);
        if (status == TFOS_OK) {
            status = print_record(options->type, record, err);
            if (status == TFOS_CORRUPT)
                status = tfos_record_reader_reject(reader, record, err);
        }
        if (status != TFOS_OK || ferror(stdout)) // which main() tells of
            return status;
    }
    return TFOS_OK;
}

int record_cat(const struct record_options *options)
{
    int result = 0;
    for (int i = 0; i < options->file_count; i++) {
        struct tfos_error err;
        struct tfos_record_reader *reader = NULL;
        struct tfos_record_reader_options reading = reader_options(options, options->files[i]);
        struct tfos_stream *stream = open_input(options->files[i]);
        reading.on_damage = tell_damage;
        if (!stream) {
            result = 1;
            continue;
        }
        enum tfos_status status = tfos_record_reader_open(stream, &reading, &reader, &err);
        if (status == TFOS_OK)
            status = print_records(options, reader, &err);
        if (status < 0)
            result = say_error(&err);
        tfos_record_reader_close(reader);
        tfos_stream_close(stream);
    }
    return result;
}

static int print_schema(const struct record_options *options,
                        const struct tfos_schema_inference *survey)
{
    struct tfos_error err;
    struct columns columns = {0};
    struct ArrowSchema schema;
    char *json = NULL, type[COLUMN_TYPE_SIZE];
    if (options->is_json) {
        if (tfos_schema_inference_save(survey, &json, &err) < 0)
            return say_error(&err);
        puts(json);
        tfos_free(json);
        return 0;
    }
    if (tfos_schema_inference_schema(survey, &schema, &err) < 0)
        return say_error(&err);
    bool is_known = columns_of_schema(&columns, &schema);
    for (size_t i = 0; i < columns.count; i++) {
        column_type_text(&columns.items[i], type);
        printf("%s %s\n", columns.items[i].name, type);
    }
    columns_clear(&columns);
    schema.release(&schema);
    return is_known ? 0 : 1;
}

int record_schema(const struct record_options *options)
{
    struct tfos_error err;
    struct tfos_schema_inference *survey = NULL;
    int result = 0;
    if (tfos_schema_inference_open(options->type, &survey, &err) < 0)
        return say_error(&err);
    for (int i = 0; result == 0 && i < options->file_count; i++) {
        struct tfos_record_reader_options reading = reader_options(options, options->files[i]);
        struct tfos_stream *stream = open_input(options->files[i]);
        uint64_t seen;
        reading.on_damage = tell_damage;
        if (!stream)
            result = 1;
        else if (tfos_schema_inference_read(survey, stream, &reading, (uint64_t)options->limit,
                                            &seen, &err) < 0)
            result = say_error(&err);
        tfos_stream_close(stream);
    }
    if (result == 0)
        result = print_schema(options, survey);
    tfos_schema_inference_close(survey);
    return result;
}
