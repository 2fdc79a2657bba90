// SPDX-License-Identifier: Apache-2.0
/// A stream over memory, which can be made to give and fail as bad ones do.
#ifndef TFOS_TEST_MEMORY_STREAM_H
#define TFOS_TEST_MEMORY_STREAM_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/stream.h>

struct memory_stream {
    struct tfos_stream base;
    uint8_t *data; ///< owned
    size_t size;
    size_t at;
    size_t step;    ///< most bytes of a read; 0: any number
    size_t fail_at; ///< writing this byte fails; 0: none does
    bool is_finished;
};

static inline enum tfos_status memory_read(struct tfos_stream *base, void *data, size_t size,
                                           size_t *count, struct tfos_error *err)
{
    struct memory_stream *stream = (struct memory_stream *)base;
    size_t left = stream->at < stream->size ? stream->size - stream->at : 0;
    (void)err;
    if (stream->step > 0 && size > stream->step)
        size = stream->step;
    *count = size < left ? size : left;
    if (*count == 0)
        return TFOS_END;
    memcpy(data, stream->data + stream->at, *count);
    stream->at += *count;
    return TFOS_OK;
}

static inline enum tfos_status memory_seek(struct tfos_stream *base, uint64_t offset,
                                           struct tfos_error *err)
{
    (void)err;
    ((struct memory_stream *)base)->at = offset;
    return TFOS_OK;
}

static inline enum tfos_status memory_write(struct tfos_stream *base, const void *data, size_t size,
                                            struct tfos_error *err)
{
    struct memory_stream *stream = (struct memory_stream *)base;
    if (stream->fail_at > 0 && stream->size + size >= stream->fail_at) {
        if (err)
            *err = (struct tfos_error){.message = "the disk is full"};
        return TFOS_IO;
    }
    stream->data = realloc(stream->data, stream->size + size + 1);
    memcpy(stream->data + stream->size, data, size);
    stream->size += size;
    return TFOS_OK;
}

static inline enum tfos_status memory_finish(struct tfos_stream *base, struct tfos_error *err)
{
    (void)err;
    ((struct memory_stream *)base)->is_finished = true;
    return TFOS_OK;
}

/// An empty one. memory_clear() frees it.
static inline struct memory_stream memory_open(void)
{
    return (struct memory_stream){.base = {.read = memory_read,
                                           .seek = memory_seek,
                                           .write = memory_write,
                                           .finish = memory_finish}};
}

/// One that holds a copy of `data`.
static inline struct memory_stream memory_of(const void *data, size_t size)
{
    struct memory_stream stream = memory_open();
    stream.data = malloc(size + 1);
    if (size > 0)
        memcpy(stream.data, data, size);
    stream.size = size;
    return stream;
}

static inline void memory_clear(struct memory_stream *stream)
{
    free(stream->data);
    *stream = (struct memory_stream){0};
}

#endif
