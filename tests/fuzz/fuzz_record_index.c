// SPDX-License-Identifier: Apache-2.0
// The text of an index from a stranger, for a file of 4,096 zeros. What is taken for an index must
// be whole and be written as it was understood; no record of it is found in that file.
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/record_index.h>

struct text {
    struct tfos_stream base;
    const uint8_t *data;
    size_t size, at, step;
    char *written;
    size_t written_size;
};

static enum tfos_status read_text(struct tfos_stream *base, void *data, size_t size, size_t *count,
                                  struct tfos_error *err)
{
    struct text *text = (struct text *)base;
    size_t left = text->at < text->size ? text->size - text->at : 0;
    (void)err;
    *count = size < text->step ? size : text->step;
    *count = *count < left ? *count : left;
    if (*count == 0)
        return TFOS_END;
    memcpy(data, text->data + text->at, *count);
    text->at += *count;
    return TFOS_OK;
}

static enum tfos_status seek_text(struct tfos_stream *base, uint64_t offset, struct tfos_error *err)
{
    (void)err;
    ((struct text *)base)->at = offset;
    return TFOS_OK;
}

static enum tfos_status write_text(struct tfos_stream *base, const void *data, size_t size,
                                   struct tfos_error *err)
{
    struct text *text = (struct text *)base;
    (void)err;
    text->written = realloc(text->written, text->written_size + size);
    memcpy(text->written + text->written_size, data, size);
    text->written_size += size;
    return TFOS_OK;
}

static uint64_t check_places(const struct tfos_record_index *index)
{
    uint64_t end = 0;
    for (uint64_t i = 0; i < tfos_record_index_count(index); i++) {
        struct tfos_record_place place = tfos_record_index_get(index, i);
        assert(place.offset == end && place.size >= 16);
        end += place.size;
        assert(end <= INT64_MAX);
    }
    return end;
}

static void check_text(const struct tfos_record_index *index)
{
    struct text saved = {.base = {.read = read_text, .write = write_text}, .step = SIZE_MAX};
    struct tfos_record_index *again = NULL;
    assert(tfos_record_index_save(index, &saved.base, NULL) == TFOS_OK);
    saved.data = (const uint8_t *)saved.written;
    saved.size = saved.written_size;
    assert(tfos_record_index_load(&saved.base, NULL, &again, NULL) == TFOS_OK);
    assert(tfos_record_index_count(again) == tfos_record_index_count(index));
    assert(check_places(again) == check_places(index));
    tfos_record_index_close(again);
    free(saved.written);
}

static void check_picking(const struct tfos_record_index *index, uint64_t end)
{
    static const uint8_t zeros[4096];
    struct text file = {.base = {.read = read_text, .seek = seek_text},
                        .data = zeros,
                        .size = sizeof(zeros),
                        .step = 1000};
    struct tfos_record_picker *picker = NULL;
    struct tfos_view record;
    enum tfos_status status = tfos_record_picker_open(&file.base, index, NULL, &picker, NULL);
    assert((status == TFOS_OK) == (end == sizeof(zeros)));
    for (uint64_t i = 0; status == TFOS_OK && i < tfos_record_index_count(index); i++)
        assert(tfos_record_picker_get(picker, i, &record, NULL) == TFOS_CORRUPT);
    tfos_record_picker_close(picker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text text = {.base = {.read = read_text}, .data = data, .size = size, .step = 7};
    struct tfos_record_index *index = NULL;
    if (tfos_record_index_load(&text.base, NULL, &index, NULL) < 0)
        return 0;
    uint64_t end = check_places(index);
    check_text(index);
    check_picking(index, end);
    tfos_record_index_close(index);
    return 0;
}
