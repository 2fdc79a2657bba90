// SPDX-License-Identifier: Apache-2.0
// tfos record count, check, index, repair, merge, split: what needs frames only.
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "record_files.h"
#include "terminal.h"
#include "value_text.h"

static void print_counts(const struct pass *pass)
{
    const struct tfos_record_counts *counts = &pass->counts;
    if (pass->options->is_json)
        print_json(json_pack("{s:o, s:I, s:I, s:I, s:I}", "file", text_to_json(pass->path),
                             "records", (json_int_t)counts->records, "bytes",
                             (json_int_t)counts->bytes, "damages", (json_int_t)counts->damages,
                             "skipped_bytes", (json_int_t)counts->skipped_bytes));
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
    all.skips_damage = true;
    for (int i = 0; i < options->file_count; i++) {
        struct pass pass = {.options = &all, .path = options->files[i]};
        if (options->is_json)
            pass.damages = json_array();
        int status = run_pass(&pass);
        const struct tfos_record_counts *counts = &pass.counts;
        result |= status != 0 || counts->damages > 0;
        if (options->is_json)
            print_json(json_pack("{s:o, s:b, s:I, s:o}", "file", text_to_json(pass.path), "ok",
                                 (int)(status == 0 && counts->damages == 0), "records",
                                 (json_int_t)counts->records, "damages", pass.damages));
        else if (status == 0)
            printf("%s: %llu records, %llu damages\n", pass.path,
                   (unsigned long long)counts->records, (unsigned long long)counts->damages);
    }
    return result;
}

static int write_records(struct pass *pass, const struct tfos_view *records, size_t count)
{
    return write_to_outputs(pass->target, records, count);
}

// Copies all files but the last to that, or to `parts` files whose names begin as it does. Counts
// what was skipped on stderr.
static int copy(const struct record_options *options, uint64_t parts)
{
    unsigned long long records = 0, damages = 0, skipped = 0;
    struct outputs outputs;
    int last = options->file_count - 1;
    int status = open_outputs(&outputs, options, options->files[last], parts);
    for (int i = 0; status == 0 && i < last; i++) {
        struct pass pass = {.options = options,
                            .path = options->files[i],
                            .what = "copied",
                            .take = write_records,
                            .target = &outputs};
        status = run_pass(&pass);
        records += pass.counts.records;
        damages += pass.counts.damages;
        skipped += pass.counts.skipped_bytes;
    }
    if (status == 0)
        status = finish_outputs(&outputs);
    if (status == 0)
        fprintf(stderr, "%llu records written; %llu damages, %llu bytes passed over\n", records,
                damages, skipped);
    close_outputs(&outputs);
    return status;
}

int record_merge(const struct record_options *options)
{
    return copy(options, 0);
}

int record_repair(const struct record_options *options)
{
    struct record_options all = *options;
    all.skips_damage = true;
    return copy(&all, 0);
}

int record_split(const struct record_options *options)
{
    return copy(options, options->limit > 0 ? options->limit : 2);
}

// ---- indexes

static int save(const struct tfos_record_index *index, const char *path)
{
    struct tfos_error err;
    struct tfos_stream *stream = open_output(path);
    if (!stream)
        return 1;
    enum tfos_status status = tfos_record_index_save(index, stream, &err);
    if (status == TFOS_OK)
        status = stream->finish(stream, &err);
    tfos_stream_close(stream);
    return status < 0 ? say_error(&err) : 0;
}

static void print_saved(const struct record_options *options, const char *path,
                        const char *index_path, uint64_t count)
{
    bool is_piped = strcmp(path, "-") == 0;
    if (options->is_json && !is_piped)
        print_json(json_pack("{s:o, s:o, s:I}", "file", text_to_json(path), "index",
                             text_to_json(index_path), "records", (json_int_t)count));
    else
        fprintf(stderr, "%llu records: %s\n", (unsigned long long)count,
                is_piped ? "the standard output" : index_path);
}

// The index of the standard input goes to the standard output.
static int index_one(const struct record_options *options, const char *path)
{
    struct tfos_error err;
    struct tfos_record_reader_options reading = reader_options(options, path);
    struct tfos_record_index *index = NULL;
    struct tfos_stream *input = open_input(path);
    size_t size = strlen(path) + sizeof ".idx";
    char *index_path = allocate(size, 1);
    int status = input ? 0 : 1;
    reading.mode = TFOS_RECORD_STRICT;
    snprintf(index_path, size, "%s%s", path, strcmp(path, "-") == 0 ? "" : ".idx");
    if (status == 0 && tfos_record_index_scan(input, &reading, &index, &err) < 0)
        status = say_error(&err);
    if (status == 0)
        status = save(index, index_path);
    if (status == 0)
        print_saved(options, path, index_path, tfos_record_index_count(index));
    tfos_record_index_close(index);
    tfos_stream_close(input);
    free(index_path);
    return status;
}

int record_index(const struct record_options *options)
{
    int result = 0;
    for (int i = 0; i < options->file_count; i++)
        result |= index_one(options, options->files[i]);
    return result;
}
