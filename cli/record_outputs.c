// SPDX-License-Identifier: Apache-2.0
#include "record_outputs.h"

#include "allocation.h"

#include <stdlib.h>
#include <string.h>

int choose_compression(const struct record_options *options, const char *path,
                       enum tfos_compression *compression)
{
    struct tfos_error err;
    *compression = options->write_compression;
    if (*compression == TFOS_COMPRESSION_AUTO &&
        tfos_record_compression_of_name(path, compression, &err) < 0)
        return say_error(&err);
    return 0;
}

static int open_one(struct output *output, const struct record_options *options, const char *path)
{
    struct tfos_error err;
    struct tfos_record_writer_options writing = {0};
    if (choose_compression(options, path, &writing.compression) != 0)
        return 1;
    output->stream = open_output(path);
    if (!output->stream)
        return 1;
    if (tfos_record_writer_open(output->stream, &writing, &output->writer, &err) < 0)
        return say_error(&err);
    return 0;
}

int open_outputs(struct outputs *outputs, const struct record_options *options, const char *path,
                 long count)
{
    *outputs = (struct outputs){.count = count > 0 ? count : 1};
    outputs->items = allocate((size_t)outputs->count, sizeof *outputs->items);
    if (count == 0)
        return open_one(outputs->items, options, path);
    size_t size = strlen(path) + 32;
    char *part = allocate(size, 1);
    int status = 0;
    for (long i = 0; status == 0 && i < count; i++) {
        snprintf(part, size, "%s-%05ld-of-%05ld", path, i, count);
        status = open_one(&outputs->items[i], options, part);
    }
    free(part);
    return status;
}

int write_to_outputs(struct outputs *outputs, const struct tfos_view *records, size_t count)
{
    struct tfos_error err;
    for (size_t i = 0; i < count; i++) {
        struct output *output = &outputs->items[outputs->next++ % outputs->count];
        if (tfos_record_writer_append(output->writer, &records[i], 1, &err) < 0)
            return say_error(&err);
    }
    return 0;
}

int finish_outputs(struct outputs *outputs)
{
    struct tfos_error err;
    for (long i = 0; i < outputs->count; i++)
        if (tfos_record_writer_finish(outputs->items[i].writer, &err) < 0)
            return say_error(&err);
    return 0;
}

void close_outputs(struct outputs *outputs)
{
    for (long i = 0; outputs->items && i < outputs->count; i++) {
        tfos_record_writer_close(outputs->items[i].writer);
        tfos_stream_close(outputs->items[i].stream);
    }
    free(outputs->items);
    outputs->items = NULL;
}
