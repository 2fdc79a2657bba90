// SPDX-License-Identifier: Apache-2.0
// tfos record count, check, repair, merge, split: what needs frames only.
#include "record_outputs.h"
#include "record_pass.h"

static void print_counts(const struct pass *pass)
{
    const struct tfos_record_counts *counts = &pass->counts;
    if (pass->options->is_json)
        print_json(json_pack("{s:o, s:I, s:I, s:I, s:I}", "file", path_to_json(pass->path),
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
    all.mode = TFOS_RECORD_SKIP_RECORD;
    for (int i = 0; i < options->file_count; i++) {
        struct pass pass = {.options = &all, .path = options->files[i]};
        if (options->is_json)
            pass.damages = json_array();
        int status = run_pass(&pass);
        const struct tfos_record_counts *counts = &pass.counts;
        result |= status != 0 || counts->damages > 0;
        if (options->is_json)
            print_json(json_pack("{s:o, s:b, s:I, s:o}", "file", path_to_json(pass.path), "ok",
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

// Copies the first `file_count` files to `path`, or `parts` files of that name. Counts what was
// passed over on stderr.
static int copy(const struct record_options *options, int file_count, const char *path, long parts)
{
    unsigned long long records = 0, damages = 0, skipped = 0;
    struct outputs outputs;
    int status = open_outputs(&outputs, options, path, parts);
    for (int i = 0; status == 0 && i < file_count; i++) {
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
    int last = options->file_count - 1;
    return copy(options, last, options->files[last], 0);
}

int record_repair(const struct record_options *options)
{
    struct record_options all = *options;
    int last = options->file_count - 1;
    all.mode = TFOS_RECORD_SKIP_RECORD;
    return copy(&all, last, options->files[last], 0);
}

int record_split(const struct record_options *options)
{
    int last = options->file_count - 1;
    return copy(options, last, options->files[last], options->limit > 0 ? options->limit : 2);
}
