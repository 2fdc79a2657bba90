// SPDX-License-Identifier: Apache-2.0
#include "record_buckets.h"

#include "progress.h"
#include "record_pass.h"
#include "temporary_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BUCKET_COUNT 64

struct bucket {
    int fd; ///< owned; -1: none
    struct tfos_stream *stream;
    struct tfos_record_writer *writer;
};

/// Records of one source: in the hand as long as they fit, then in buckets.
struct gathering {
    struct mixing *mixing;
    struct hand hand;
    struct bucket *buckets; ///< owned; NULL: there are none
};

static void close_bucket(struct bucket *bucket)
{
    tfos_record_writer_close(bucket->writer);
    tfos_stream_close(bucket->stream);
    if (bucket->fd >= 0)
        close(bucket->fd);
    *bucket = (struct bucket){.fd = -1};
}

static int say_bucket_error(const struct tfos_error *err)
{
    progress_end();
    fprintf(stderr, "tfos: a temporary file in %s: %s (TMPDIR names another folder)\n",
            temporary_folder(), err->message);
    return 1;
}

static int open_bucket(struct bucket *bucket)
{
    struct tfos_error err;
    bucket->fd = open_temporary_file();
    if (bucket->fd < 0)
        return 1;
    if (tfos_stream_open_fd(bucket->fd, &bucket->stream, &err) < 0 ||
        tfos_record_writer_open(bucket->stream, NULL, &bucket->writer, &err) < 0)
        return say_bucket_error(&err);
    return 0;
}

static int put_in_bucket(struct gathering *gathering, struct tfos_view record)
{
    struct tfos_error err;
    uint64_t number = random_below(&gathering->mixing->numbers, BUCKET_COUNT);
    if (tfos_record_writer_append(gathering->buckets[number].writer, &record, 1, &err) < 0)
        return say_bucket_error(&err);
    return 0;
}

// Opens the buckets and puts the hand in them.
static int open_buckets(struct gathering *gathering)
{
    int status = 0;
    gathering->buckets = allocate(BUCKET_COUNT, sizeof *gathering->buckets);
    for (int i = 0; i < BUCKET_COUNT; i++)
        gathering->buckets[i].fd = -1;
    for (int i = 0; i < BUCKET_COUNT && status == 0; i++)
        status = open_bucket(&gathering->buckets[i]);
    for (size_t i = 0; i < gathering->hand.count && status == 0; i++)
        status = put_in_bucket(gathering, hand_get(&gathering->hand, i));
    hand_clear(&gathering->hand);
    return status;
}

static int gather(struct pass *pass, const struct tfos_view *records, size_t count)
{
    struct gathering *gathering = pass->target;
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        if (gathering->buckets) {
            status = put_in_bucket(gathering, records[i]);
            continue;
        }
        hand_add(&gathering->hand, records[i]);
        // A single record is held however large it is.
        if (hand_size(&gathering->hand) > gathering->mixing->memory && gathering->hand.count > 1)
            status = open_buckets(gathering);
    }
    return status;
}

static int empty_gathering(struct gathering *gathering, int status);

static int empty_bucket(struct mixing *mixing, struct bucket *bucket)
{
    struct tfos_error err;
    struct gathering gathering = {.mixing = mixing};
    struct record_options plain = {.compression = TFOS_COMPRESSION_NONE,
                                   .max_record_size = INT64_MAX};
    struct pass pass = {.options = &plain,
                        .path = "a temporary file",
                        .what = "mixed",
                        .take = gather,
                        .target = &gathering};
    if (tfos_record_writer_finish(bucket->writer, &err) < 0)
        return say_bucket_error(&err);
    int status = lseek(bucket->fd, 0, SEEK_SET) == 0 ? run_pass_on(&pass, bucket->stream) : 1;
    close_bucket(bucket);
    return empty_gathering(&gathering, status);
}

// Writes what was gathered, unless gathering has failed with `status`, and frees it.
static int empty_gathering(struct gathering *gathering, int status)
{
    struct mixing *mixing = gathering->mixing;
    if (status == 0)
        status = hand_deal(&gathering->hand, &mixing->numbers, &mixing->outputs);
    hand_clear(&gathering->hand);
    for (int i = 0; gathering->buckets && i < BUCKET_COUNT; i++) {
        if (status == 0)
            status = empty_bucket(mixing, &gathering->buckets[i]);
        close_bucket(&gathering->buckets[i]);
    }
    free(gathering->buckets);
    return status;
}

int mix_files(struct mixing *mixing, const char *const *paths, int count)
{
    struct gathering gathering = {.mixing = mixing};
    int status = 0;
    for (int i = 0; i < count && status == 0; i++) {
        struct pass pass = {.options = mixing->options,
                            .path = paths[i],
                            .what = "read",
                            .take = gather,
                            .target = &gathering};
        status = run_pass(&pass);
    }
    return empty_gathering(&gathering, status);
}
