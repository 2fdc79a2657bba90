// SPDX-License-Identifier: Apache-2.0
// Only the ends of the frames are kept: each begins where the one before ends, the first at 0.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tfos/record_index.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/record.h"

#define VIEW_COUNT 256
#define TEXT_SIZE (64u << 10) // read and written at a time
#define LINE_SIZE 64          // more than two numbers of 64 bits take

struct tfos_record_index {
    uint64_t *ends; ///< owned
    size_t count;
};

static uint64_t end_of(const struct tfos_record_index *index)
{
    return index->count > 0 ? index->ends[index->count - 1] : 0;
}

static enum tfos_status make_index(struct tfos_record_index **out, struct tfos_error *err)
{
    *out = tfos__alloc(1, sizeof(**out));
    return *out ? TFOS_OK : tfos__no_memory(err, "record", "an index");
}

static enum tfos_status add(struct tfos_record_index *index, uint64_t end, struct tfos_error *err)
{
    void *ends = tfos__array_grow(index->ends, index->count, sizeof(*index->ends));
    if (!ends)
        return tfos__no_memory(err, "record", "an index");
    index->ends = ends;
    index->ends[index->count++] = end;
    return TFOS_OK;
}

static enum tfos_status scan(struct tfos_record_reader *reader, struct tfos_record_index *index,
                             struct tfos_error *err)
{
    struct tfos_view records[VIEW_COUNT];
    size_t count = 0;
    for (;;) {
        enum tfos_status status =
            tfos_record_reader_next_batch(reader, records, VIEW_COUNT, &count, err);
        if (status != TFOS_OK)
            return status == TFOS_END ? TFOS_OK : status;
        for (size_t i = 0; i < count; i++)
            TFOS__TRY(add(index, end_of(index) + TFOS__RECORD_FRAME_SIZE + records[i].size, err));
    }
}

enum tfos_status tfos_record_index_scan(struct tfos_stream *stream,
                                        const struct tfos_record_reader_options *options,
                                        struct tfos_record_index **out, struct tfos_error *err)
{
    struct tfos_record_reader_options whole =
        options ? *options : (struct tfos_record_reader_options){0};
    struct tfos_record_reader *reader = NULL;
    struct tfos_record_index *index = NULL;
    if (whole.mode != TFOS_RECORD_STRICT || whole.begin > 0 || whole.end > 0)
        return tfos__fail(err, TFOS_INVALID,
                          "record: an index is made of a whole file, and strictly");
    whole.end = UINT64_MAX; // a range, so that a compressed file is refused
    TFOS__TRY(tfos_record_reader_open(stream, &whole, &reader, err));
    enum tfos_status status = make_index(&index, err);
    if (status == TFOS_OK)
        status = scan(reader, index, err);
    tfos_record_reader_close(reader);
    if (status < 0)
        tfos_record_index_close(index);
    else
        *out = index;
    return status;
}

/// An index that is read from text.
struct loading {
    struct tfos_record_index *index;
    const char *name;
    unsigned long long line_number; ///< from 1
    char line[LINE_SIZE];
    size_t size; ///< of the line so far
};

// Reads a number and moves on behind it. False: there is none, or it is too large.
static bool read_number(const char **text, uint64_t *number)
{
    const char *at = *text;
    for (*number = 0; *at >= '0' && *at <= '9'; at++) {
        if (*number > (INT64_MAX - 9) / 10)
            return false;
        *number = 10 * *number + (uint64_t)(*at - '0');
    }
    bool is_number = at > *text;
    *text = at;
    return is_number;
}

static void skip_blanks(const char **text)
{
    while (**text == ' ' || **text == '\t' || **text == '\r')
        ++*text;
}

static enum tfos_status end_line(struct loading *loading, struct tfos_error *err)
{
    const char *text = loading->line;
    struct tfos_record_place place;
    uint64_t expected = end_of(loading->index);
    loading->line[loading->size] = '\0';
    loading->size = 0;
    skip_blanks(&text);
    bool is_place = read_number(&text, &place.offset);
    skip_blanks(&text);
    is_place = is_place && read_number(&text, &place.size);
    skip_blanks(&text);
    if (!is_place || *text != '\0' || place.size < TFOS__RECORD_FRAME_SIZE)
        return tfos__fail(err, TFOS_CORRUPT,
                          "record: %s: line %llu: it is not \"OFFSET SIZE\", bytes, of a record "
                          "with its %d bytes of checksums",
                          loading->name, loading->line_number, TFOS__RECORD_FRAME_SIZE);
    if (place.offset != expected)
        return tfos__fail(err, TFOS_CORRUPT,
                          "record: %s: line %llu: the record begins at %llu, where the one before "
                          "ends at %llu",
                          loading->name, loading->line_number, (unsigned long long)place.offset,
                          (unsigned long long)expected);
    if (place.size > INT64_MAX - expected)
        return tfos__fail(err, TFOS_CORRUPT, "record: %s: line %llu: no file is that large",
                          loading->name, loading->line_number);
    loading->line_number++;
    return add(loading->index, expected + place.size, err);
}

static enum tfos_status take_text(struct loading *loading, const char *text, size_t size,
                                  struct tfos_error *err)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n') {
            TFOS__TRY(end_line(loading, err));
        } else if (text[i] == '\0' || loading->size == LINE_SIZE - 1) {
            return tfos__fail(err, TFOS_CORRUPT,
                              "record: %s: line %llu: this is not the text of an index",
                              loading->name, loading->line_number);
        } else {
            loading->line[loading->size++] = text[i];
        }
    }
    return TFOS_OK;
}

static enum tfos_status load(struct loading *loading, struct tfos_stream *stream,
                             struct tfos_error *err)
{
    char *text = tfos__alloc(TEXT_SIZE, 1);
    enum tfos_status status = text ? TFOS_OK : tfos__no_memory(err, "record", "an index");
    while (status == TFOS_OK) {
        size_t count = 0;
        status = stream->read(stream, text, TEXT_SIZE, &count, err);
        if (status == TFOS_OK)
            status = take_text(loading, text, count, err);
    }
    if (status == TFOS_END)
        status = loading->size > 0 ? end_line(loading, err) : TFOS_OK;
    tfos__free(text);
    return status;
}

enum tfos_status tfos_record_index_load(struct tfos_stream *stream, const char *name,
                                        struct tfos_record_index **out, struct tfos_error *err)
{
    struct loading loading = {.name = name ? name : "the index", .line_number = 1};
    TFOS__TRY(make_index(&loading.index, err));
    enum tfos_status status = load(&loading, stream, err);
    if (status < 0)
        tfos_record_index_close(loading.index);
    else
        *out = loading.index;
    return status;
}

static enum tfos_status flush(struct tfos__buffer *text, struct tfos_stream *stream,
                              struct tfos_error *err)
{
    if (text->end > 0)
        TFOS__TRY(stream->write(stream, text->data, text->end, err));
    text->end = 0;
    return TFOS_OK;
}

enum tfos_status tfos_record_index_save(const struct tfos_record_index *index,
                                        struct tfos_stream *stream, struct tfos_error *err)
{
    struct tfos__buffer text = {0};
    enum tfos_status status = tfos__buffer_reserve(&text, TEXT_SIZE + LINE_SIZE, err);
    for (size_t i = 0; status == TFOS_OK && i < index->count; i++) {
        struct tfos_record_place place = tfos_record_index_get(index, i);
        text.end +=
            (size_t)snprintf((char *)text.data + text.end, LINE_SIZE, "%llu %llu\n",
                             (unsigned long long)place.offset, (unsigned long long)place.size);
        if (text.end >= TEXT_SIZE)
            status = flush(&text, stream, err);
    }
    if (status == TFOS_OK)
        status = flush(&text, stream, err);
    tfos__buffer_clear(&text);
    return status;
}

uint64_t tfos_record_index_count(const struct tfos_record_index *index)
{
    return index->count;
}

struct tfos_record_place tfos_record_index_get(const struct tfos_record_index *index,
                                               uint64_t number)
{
    uint64_t begin = number > 0 ? index->ends[number - 1] : 0;
    return (struct tfos_record_place){begin, index->ends[number] - begin};
}

void tfos_record_index_close(struct tfos_record_index *index)
{
    if (!index)
        return;
    tfos__free(index->ends);
    tfos__free(index);
}
