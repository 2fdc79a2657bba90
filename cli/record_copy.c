// SPDX-License-Identifier: Apache-2.0
// tfos record count, check, repair, merge, split: what needs frames only.
#include "record_command.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define VIEW_COUNT 256

/// Reads a file to its end and hands each batch of records on.
struct pass {
    const struct record_options *options;
    const char *path;
    json_t *damages; ///< where it is told as JSON; NULL: on stderr
    int (*take)(struct pass *pass, const struct tfos_view *records, size_t count); ///< may be NULL
    void *target;
    struct tfos_record_counts counts;
};

static void tell_damage(void *context, const struct tfos_record_damage *damage)
{
    struct pass *pass = context;
    if (pass->damages) {
        json_array_append_new(pass->damages, json_pack("{s:s, s:I, s:I, s:s}", "file", pass->path,
                                                       "offset", (json_int_t)damage->offset, "size",
                                                       (json_int_t)damage->size, "damage",
                                                       tfos_record_damage_text(damage->kind)));
        return;
    }
    fprintf(stderr, "tfos: %s", damage->message);
    if (damage->size > 0)
        fprintf(stderr, " (%llu bytes passed over)", (unsigned long long)damage->size);
    fputc('\n', stderr);
}

// The exit status.
static int run_pass(struct pass *pass)
{
    struct tfos_error err;
    struct tfos_record_reader *reader = NULL;
    struct tfos_view records[VIEW_COUNT];
    struct tfos_record_reader_options options = reader_options(pass->options, pass->path);
    struct tfos_stream *stream = open_input(pass->path);
    size_t count;
    if (!stream)
        return 1;
    options.on_damage = tell_damage;
    options.context = pass;
    enum tfos_status status = tfos_record_reader_open(stream, &options, &reader, &err);
    int result = 0;
    while (status == TFOS_OK && result == 0) {
        status = tfos_record_reader_next_batch(reader, records, VIEW_COUNT, &count, &err);
        if (status == TFOS_OK && pass->take)
            result = pass->take(pass, records, count);
    }
    if (status < 0)
        result = say_error(&err);
    if (reader)
        pass->counts = tfos_record_reader_get_counts(reader);
    tfos_record_reader_close(reader);
    tfos_stream_close(stream);
    return result;
}

static void print_json(json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    puts(text ? text : "null");
    free(text);
    json_decref(value);
}

static void print_counts(const struct pass *pass)
{
    const struct tfos_record_counts *counts = &pass->counts;
    if (pass->options->is_json)
        print_json(json_pack("{s:s, s:I, s:I, s:I, s:I}", "file", pass->path, "records",
                             (json_int_t)counts->records, "bytes", (json_int_t)counts->bytes,
                             "damages", (json_int_t)counts->damages, "skipped_bytes",
                             (json_int_t)counts->skipped_bytes));
    else
        printf("%llu\t%s\n", (unsigned long long)counts->records, pass->path);
}

int record_count(const struct record_options *options)
{
    int result = 0;
    unsigned long long records = 0;
    for (int i = 0; i < options->file_count; i++) {
        struct pass pass = {.options = options, .path = options->files[i]};
        int status = run_pass(&pass);
        records += pass.counts.records;
        if (status == 0)
            print_counts(&pass);
        result |= status;
    }
    if (options->file_count > 1 && !options->is_json)
        printf("%llu\ttotal\n", records);
    return result;
}

int record_check(const struct record_options *options)
{
    struct record_options all = *options;
    int result = 0;
    all.mode = TFOS_RECORD_SKIP_RECORD;
    for (int i = 0; i < options->file_count; i++) {
        struct pass pass = {.options = &all, .path = options->files[i]};
        if (options->is_json)
            pass.damages = json_array();
        int status = run_pass(&pass);
        const struct tfos_record_counts *counts = &pass.counts;
        result |= status != 0 || counts->damages > 0;
        if (options->is_json)
            print_json(json_pack("{s:s, s:b, s:I, s:o}", "file", pass.path, "ok",
                                 (int)(status == 0 && counts->damages == 0), "records",
                                 (json_int_t)counts->records, "damages", pass.damages));
        else if (status == 0)
            printf("%s: %llu records, %llu damages\n", pass.path,
                   (unsigned long long)counts->records, (unsigned long long)counts->damages);
    }
    return result;
}

/// Files that records go to in turn.
struct outputs {
    struct output {
        struct tfos_stream *stream;
        struct tfos_record_writer *writer;
    } * items;
    long count, next;
};

static enum tfos_compression compression_for(const struct record_options *options, const char *path)
{
    size_t size = strlen(path);
    if (options->write_compression != TFOS_COMPRESSION_AUTO)
        return options->write_compression;
    return size > 3 && strcmp(path + size - 3, ".gz") == 0 ? TFOS_COMPRESSION_GZIP
                                                           : TFOS_COMPRESSION_NONE;
}

static int open_one(struct output *output, const struct record_options *options, const char *path)
{
    struct tfos_error err;
    struct tfos_record_writer_options writing = {.compression = compression_for(options, path)};
    output->stream = open_output(path);
    if (!output->stream)
        return 1;
    if (tfos_record_writer_open(output->stream, &writing, &output->writer, &err) < 0)
        return say_error(&err);
    return 0;
}

static int finish_all(struct outputs *outputs)
{
    struct tfos_error err;
    for (long i = 0; i < outputs->count; i++)
        if (tfos_record_writer_finish(outputs->items[i].writer, &err) < 0)
            return say_error(&err);
    return 0;
}

static void close_all(struct outputs *outputs)
{
    for (long i = 0; i < outputs->count; i++) {
        tfos_record_writer_close(outputs->items[i].writer);
        tfos_stream_close(outputs->items[i].stream);
    }
}

static int write_records(struct pass *pass, const struct tfos_view *records, size_t count)
{
    struct outputs *outputs = pass->target;
    struct tfos_error err;
    for (size_t i = 0; i < count; i++) {
        struct output *output = &outputs->items[outputs->next++ % outputs->count];
        if (tfos_record_writer_append(output->writer, &records[i], 1, &err) < 0)
            return say_error(&err);
    }
    return 0;
}

// Copies files to where `outputs` says. Counts what was passed over on stderr.
static int copy(const struct record_options *options, int file_count, struct outputs *outputs)
{
    unsigned long long records = 0, damages = 0, skipped = 0;
    for (int i = 0; i < file_count; i++) {
        struct pass pass = {.options = options,
                            .path = options->files[i],
                            .take = write_records,
                            .target = outputs};
        int status = run_pass(&pass);
        if (status != 0)
            return status;
        records += pass.counts.records;
        damages += pass.counts.damages;
        skipped += pass.counts.skipped_bytes;
    }
    int status = finish_all(outputs);
    if (status == 0)
        fprintf(stderr, "%llu records written; %llu damages, %llu bytes passed over\n", records,
                damages, skipped);
    return status;
}

static int copy_to(const struct record_options *options, const char *path)
{
    struct output output = {0};
    struct outputs outputs = {.items = &output, .count = 1};
    int status = open_one(&output, options, path);
    if (status == 0)
        status = copy(options, options->file_count - 1, &outputs);
    close_all(&outputs);
    return status;
}

int record_merge(const struct record_options *options)
{
    return copy_to(options, options->files[options->file_count - 1]);
}

int record_repair(const struct record_options *options)
{
    struct record_options all = *options;
    all.mode = TFOS_RECORD_SKIP_RECORD;
    return copy_to(&all, options->files[1]);
}

int record_split(const struct record_options *options)
{
    struct outputs outputs = {.count = options->limit > 0 ? options->limit : 2};
    const char *prefix = options->files[1];
    size_t size = strlen(prefix) + 32;
    char *path = malloc(size);
    outputs.items = calloc((size_t)outputs.count, sizeof *outputs.items);
    int status = path && outputs.items ? 0 : 1;
    for (long i = 0; status == 0 && i < outputs.count; i++) {
        snprintf(path, size, "%s-%05ld-of-%05ld", prefix, i, outputs.count);
        status = open_one(&outputs.items[i], options, path);
    }
    if (status == 0)
        status = copy(options, 1, &outputs);
    if (outputs.items)
        close_all(&outputs);
    free(outputs.items);
    free(path);
    return status;
}
