// SPDX-License-Identifier: Apache-2.0
// TFRecord files from C: rows in Arrow columns become tf.train.Examples in a file, the file gets an
// index, and one record is found by its number and read back into a column.
#include <stdio.h>
#include <tfos.h>

#define ROWS 1000

/// One column of doubles, as the Arrow C data interface has it. Points into itself.
struct column {
    struct ArrowSchema schema, field, *fields[1];
    struct ArrowArray array, values, *columns[1];
    const void *no_buffers[1], *buffers[2];
};

static void init_column(struct column *column, const double *values, int64_t count)
{
    *column = (struct column){.field = {.format = "g", .name = "x"},
                              .fields = {&column->field},
                              .columns = {&column->values},
                              .buffers = {NULL, values}};
    column->schema = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = 1, .children = column->fields};
    column->values =
        (struct ArrowArray){.length = count, .n_buffers = 2, .buffers = column->buffers};
    column->array = (struct ArrowArray){.length = count,
                                        .n_buffers = 1,
                                        .buffers = column->no_buffers,
                                        .n_children = 1,
                                        .children = column->columns};
}

static enum tfos_status write_rows(const struct column *column,
                                   struct tfos_example_encoder *encoder,
                                   struct tfos_record_writer *writer, struct tfos_error *err)
{
    struct tfos_view frames;
    enum tfos_status status =
        tfos_example_encoder_encode(encoder, &column->array, &frames, NULL, err);
    if (status == TFOS_OK)
        status = tfos_record_writer_append_frames(writer, frames, err);
    if (status != TFOS_OK)
        return status;
    size_t count;
    const struct tfos_example_loss *losses = tfos_example_encoder_losses(encoder, &count);
    for (size_t i = 0; i < count; i++)
        printf("%s: %llu of %d doubles became the nearest float\n", losses[i].column,
               (unsigned long long)losses[i].rounded, ROWS);
    return tfos_record_writer_finish(writer, err);
}

static enum tfos_status write_file(const char *path, const struct column *column,
                                   struct tfos_error *err)
{
    const struct tfos_record_writer_options options = {.compression = TFOS_COMPRESSION_NONE};
    struct tfos_example_encoder *encoder = NULL;
    struct tfos_record_writer *writer = NULL;
    struct tfos_stream *stream = NULL;
    enum tfos_status status = tfos_stream_open_writer(path, &stream, err);
    if (status == TFOS_OK)
        status = tfos_example_encoder_open(&column->schema, NULL, &encoder, err);
    if (status == TFOS_OK)
        status = tfos_record_writer_open(stream, &options, &writer, err);
    if (status == TFOS_OK)
        status = write_rows(column, encoder, writer, err);
    tfos_record_writer_close(writer);
    tfos_example_encoder_close(encoder);
    tfos_stream_close(stream);
    return status;
}

static enum tfos_status write_index(const char *path, const char *index_path,
                                    struct tfos_error *err)
{
    const struct tfos_record_reader_options options = {.name = path};
    struct tfos_record_index *index = NULL;
    struct tfos_stream *file = NULL, *text = NULL;
    enum tfos_status status = tfos_stream_open_reader(path, &file, err);
    if (status == TFOS_OK)
        status = tfos_record_index_scan(file, &options, &index, err);
    if (status == TFOS_OK)
        status = tfos_stream_open_writer(index_path, &text, err);
    if (status == TFOS_OK)
        status = tfos_record_index_save(index, text, err);
    if (status == TFOS_OK)
        status = text->finish(text, err);
    tfos_record_index_close(index);
    tfos_stream_close(text);
    tfos_stream_close(file);
    return status;
}

/// Decodes one record and prints its value.
static enum tfos_status show_record(struct tfos_view record, const struct column *column,
                                    struct tfos_error *err)
{
    struct tfos_example_decoder *decoder;
    struct ArrowArray array = {0};
    size_t appended;
    enum tfos_status status = tfos_example_decoder_open(&column->schema, NULL, &decoder, err);
    if (status != TFOS_OK)
        return status;
    status = tfos_example_decoder_append(decoder, &record, 1, &appended, err);
    if (status == TFOS_OK)
        printf("%lld row: ", (long long)tfos_example_decoder_row_count(decoder));
    if (status == TFOS_OK)
        status = tfos_example_decoder_take(decoder, &array, err);
    if (status == TFOS_OK) {
        printf("x = %g\n", ((const double *)array.children[0]->buffers[1])[0]);
        array.release(&array);
    }
    tfos_example_decoder_close(decoder);
    return status;
}

static enum tfos_status pick(struct tfos_stream *file, struct tfos_stream *text,
                             const struct column *column, uint64_t number, struct tfos_error *err)
{
    struct tfos_record_index *index = NULL;
    struct tfos_record_picker *picker = NULL;
    struct tfos_view record;
    enum tfos_status status = tfos_record_index_load(text, NULL, &index, err);
    if (status == TFOS_OK)
        status = tfos_record_picker_open(file, index, NULL, &picker, err);
    if (status == TFOS_OK)
        status = tfos_record_picker_get(picker, number, &record, err);
    if (status == TFOS_OK) {
        struct tfos_record_place place = tfos_record_index_get(index, number);
        printf("record %llu of %llu begins at byte %llu\n", (unsigned long long)number,
               (unsigned long long)tfos_record_index_count(index),
               (unsigned long long)place.offset);
        status = show_record(record, column, err);
    }
    tfos_record_picker_close(picker);
    tfos_record_index_close(index);
    return status;
}

static enum tfos_status show(const char *path, const char *index_path, const struct column *column,
                             struct tfos_error *err)
{
    struct tfos_stream *file = NULL, *text = NULL;
    enum tfos_status status = tfos_stream_open_reader(path, &file, err);
    if (status == TFOS_OK)
        status = tfos_stream_open_reader(index_path, &text, err);
    if (status == TFOS_OK)
        status = pick(file, text, column, ROWS / 2, err);
    tfos_stream_close(text);
    tfos_stream_close(file);
    return status;
}

int main(int argc, char **argv)
{
    double values[ROWS];
    struct column column;
    struct tfos_error err;
    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE INDEX\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < ROWS; i++)
        values[i] = i / 10.0;
    init_column(&column, values, ROWS);
    enum tfos_status status = write_file(argv[1], &column, &err);
    if (status == TFOS_OK)
        status = write_index(argv[1], argv[2], &err);
    if (status == TFOS_OK)
        status = show(argv[1], argv[2], &column, &err);
    if (status == TFOS_OK)
        return 0;
    fprintf(stderr, "%s: %s\n", tfos_status_name(status), err.message);
    return 1;
}
