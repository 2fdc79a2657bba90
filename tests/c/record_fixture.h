// SPDX-License-Identifier: Apache-2.0
/// Files of records in memory, and reading them to their end.
#ifndef TFOS_TEST_RECORD_FIXTURE_H
#define TFOS_TEST_RECORD_FIXTURE_H

#include <tfos/record.h>

#include "harness.h"
#include "memory_stream.h"
#include "record/crc32c.h"
#include "record/record.h"

#define READ_LIMIT 64 // records

/// What was read of a file.
struct reading {
    enum tfos_status status; ///< with which it ended
    struct tfos_error err;
    size_t count;
    uint64_t offsets[READ_LIMIT];
    size_t sizes[READ_LIMIT];
    uint32_t checksums[READ_LIMIT];
    struct tfos_record_counts counts;
};

/// Reads with `capacity` records a call, until a call is not OK.
static inline struct reading read_all(struct memory_stream *stream,
                                      const struct tfos_record_reader_options *options,
                                      size_t capacity)
{
    struct reading reading = {0};
    struct tfos_record_reader *reader = NULL;
    struct tfos_view records[READ_LIMIT];
    stream->at = 0;
    reading.status = tfos_record_reader_open(&stream->base, options, &reader, &reading.err);
    while (reading.status == TFOS_OK) {
        size_t count = 0;
        reading.status =
            tfos_record_reader_next_batch(reader, records, capacity, &count, &reading.err);
        if (reading.status != TFOS_OK)
            break;
        assert_in_range(count, 1, capacity);
        assert_true(reading.count + count <= READ_LIMIT);
        for (size_t i = 0; i < count; i++, reading.count++) {
            reading.offsets[reading.count] = tfos__record_reader_offset(reader, records[i]);
            reading.sizes[reading.count] = records[i].size;
            reading.checksums[reading.count] =
                tfos__record_crc32c(0, records[i].data, records[i].size);
        }
    }
    if (reader) {
        reading.counts = tfos_record_reader_get_counts(reader);
        // What has ended stays so.
        struct tfos_view record;
        assert_int_equal(tfos_record_reader_next(reader, &record, NULL), reading.status);
    }
    tfos_record_reader_close(reader);
    return reading;
}

/// A record of `size` bytes that no other number gives.
static inline uint8_t *make_record(uint32_t number, size_t size)
{
    uint8_t *data = malloc(size + 1);
    uint32_t state = number * 2654435761u + 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (uint8_t)(state >> 24);
    }
    return data;
}

/// A file of records of these sizes, numbered from 0.
static inline struct memory_stream make_file(const size_t *sizes, size_t count,
                                             const struct tfos_record_writer_options *options)
{
    struct tfos_error err;
    struct memory_stream stream = memory_open();
    struct tfos_record_writer *writer = NULL;
    assert_done(tfos_record_writer_open(&stream.base, options, &writer, &err));
    for (size_t i = 0; i < count; i++) {
        struct tfos_view record = {make_record((uint32_t)i, sizes[i]), sizes[i]};
        assert_done(tfos_record_writer_append(writer, &record, 1, &err));
        free((void *)(uintptr_t)record.data);
    }
    assert_done(tfos_record_writer_finish(writer, &err));
    assert_true(stream.is_finished);
    tfos_record_writer_close(writer);
    return stream;
}

/// That record `index` of a reading is the one made with `number`.
static inline void assert_record(const struct reading *reading, size_t index, uint32_t number,
                                 size_t size)
{
    uint8_t *data = make_record(number, size);
    assert_true(index < reading->count);
    assert_int_equal(reading->sizes[index], size);
    assert_int_equal(reading->checksums[index], tfos__record_crc32c(0, data, size));
    free(data);
}

#endif
