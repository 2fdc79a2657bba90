// SPDX-License-Identifier: Apache-2.0
// tfos record index: where the records of files are, beside each in the text form of tfrecord2idx.
#include "allocation.h"
#include "record_pass.h"

#include <stdlib.h>
#include <string.h>

static enum tfos_status save(const struct tfos_record_index *index, struct tfos_stream *stream,
                             struct tfos_error *err)
{
    enum tfos_status status = tfos_record_index_save(index, stream, err);
    return status == TFOS_OK ? stream->finish(stream, err) : status;
}

static int tell(const struct record_options *options, const char *path, const char *index_path,
                const struct tfos_record_index *index)
{
    uint64_t count = tfos_record_index_count(index);
    if (options->is_json && strcmp(path, "-") != 0)
        print_json(json_pack("{s:o, s:o, s:I}", "file", path_to_json(path), "index",
                             path_to_json(index_path), "records", (json_int_t)count));
    else
        fprintf(stderr, "%llu records: %s\n", (unsigned long long)count, index_path);
    return 0;
}

// The index of the standard input goes to the standard output.
static int index_one(const struct record_options *options, const char *path)
{
    struct tfos_error err;
    struct tfos_record_reader_options reading = reader_options(options, path);
    struct tfos_record_index *index = NULL;
    struct tfos_stream *input = open_input(path), *output = NULL;
    bool is_piped = strcmp(path, "-") == 0;
    struct bytes index_path = {0};
    int result = input ? 0 : 1;
    reading.mode = TFOS_RECORD_STRICT;
    if (result == 0 && tfos_record_index_scan(input, &reading, &index, &err) < 0)
        result = say_error(&err);
    bytes_add(&index_path, path, strlen(path));
    bytes_add(&index_path, is_piped ? "" : ".idx", is_piped ? 1 : sizeof ".idx");
    if (result == 0 && !(output = open_output(index_path.data)))
        result = 1;
    if (result == 0 && save(index, output, &err) < 0)
        result = say_error(&err);
    if (result == 0)
        result = tell(options, path, is_piped ? "the standard output" : index_path.data, index);
    tfos_record_index_close(index);
    tfos_stream_close(output);
    tfos_stream_close(input);
    free(index_path.data);
    return result;
}

int record_index(const struct record_options *options)
{
    int result = 0;
    for (int i = 0; i < options->file_count; i++)
        result |= index_one(options, options->files[i]);
    return result;
}
