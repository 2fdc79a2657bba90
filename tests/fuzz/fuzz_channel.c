// SPDX-License-Identifier: Apache-2.0
// Any bytes as a channel. With an odd first byte, they are the page's words and the ring behind
// them; with an even one, the ring of a page that is in order. The reader may find it corrupt, but
// does not crash, loop or hand out a view that leads outside. Where the writer waits for space, the
// consumer holds all batches, so that they are detached.
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arrow/arrow.h"
#include "feed/feed.h"
#include "feed/feed_channel.h"

#define RING_SIZE 16384
#define RESULT_SIZE 4096
#define HEADER_SIZE 384
#define DETACHMENT_MS 4 ///< a small ring's, twice

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t sink;

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void touch(const void *data, uint64_t size)
{
    const uint8_t *bytes = data;

    // The first, the last, and some between.
    for (uint64_t i = 0; i < size; i += size / 64 + 1)
        sink ^= bytes[i];
    if (size > 0)
        sink ^= bytes[size - 1];
}

static uint64_t touch_offsets(const struct ArrowArray *array, bool is_wide)
{
    int64_t last = 0;

    for (int64_t i = 0; i <= array->length; i++) {
        int64_t offset = is_wide ? ((const int64_t *)array->buffers[1])[i]
                                 : ((const int32_t *)array->buffers[1])[i];
        require(offset >= last);
        last = offset;
    }
    return (uint64_t)last;
}

// Reads all that a consumer may read of a column.
static void walk(const struct ArrowSchema *schema, const struct ArrowArray *array)
{
    struct tfos__arrow_type type;
    uint64_t size = 0;

    require(tfos__arrow_type_read(&type, schema, NULL) == TFOS_OK);
    require(array->n_buffers == tfos__arrow_buffer_count(&type) && array->offset == 0);
    require(array->n_children == schema->n_children && array->release);
    require(array->null_count <= array->length &&
            (array->buffers[0] || array->null_count == 0 || array->length == 0));
    if (array->buffers[0])
        touch(array->buffers[0], ((uint64_t)array->length + 7) / 8);
    if (type.layout == TFOS__ARROW_FIXED) {
        require(tfos__arrow_size(array->length, type.width, &size));
        touch(array->buffers[1], size);
    }
    if (tfos__arrow_has_offsets(&type))
        size = touch_offsets(array, type.width == 64);
    if (type.layout == TFOS__ARROW_VARIABLE)
        touch(array->buffers[2], size);
    for (int64_t i = 0; i < array->n_children; i++) {
        if (type.layout == TFOS__ARROW_OFFSETS)
            require(array->children[i]->length >= (int64_t)size);
        if (type.layout == TFOS__ARROW_FIELDS)
            require(array->children[i]->length >= array->length);
        walk(schema->children[i], array->children[i]);
    }
}

static int make_channel(const uint8_t *data, size_t size)
{
    static uint8_t file[TFOS__FEED_PAGE_SIZE + RING_SIZE + RESULT_SIZE];
    struct tfos__feed_channel_page page = {.size = RING_SIZE, .result_size = RESULT_SIZE};
    bool is_whole = size > 0 && data[0] % 2 == 1;

    memset(file, 0, sizeof(file));
    if (size > 0) {
        data++;
        size--;
    }
    if (is_whole) {
        size_t header_size = size < HEADER_SIZE ? size : HEADER_SIZE;
        memcpy(file, data, header_size);
        data += header_size;
        size -= header_size;
    } else {
        memcpy(page.magic, "TFOSCHN1", sizeof(page.magic));
        page.head = (size < RING_SIZE ? size : RING_SIZE) / TFOS__FEED_RECORD_ALIGN *
                    TFOS__FEED_RECORD_ALIGN;
        memcpy(file, &page, sizeof(page));
    }
    memcpy(file + TFOS__FEED_PAGE_SIZE, data,
           size < RING_SIZE + RESULT_SIZE ? size : RING_SIZE + RESULT_SIZE);
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    require(fd >= 0 && write(fd, file, sizeof(file)) == (ssize_t)sizeof(file));
    require(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    return fd;
}

static bool is_wanting(const uint8_t *data, size_t size)
{
    const size_t place = 1 + offsetof(struct tfos__feed_channel_page, wanted);
    uint64_t wanted = 0;

    if (size >= place + sizeof(wanted) && data[0] % 2 == 1)
        memcpy(&wanted, data + place, sizeof(wanted));
    return wanted != 0;
}

static void release(struct tfos_feed_item *item)
{
    walk(&item->schema, &item->array);
    item->schema.release(&item->schema);
    item->array.release(&item->array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tfos_feed_item held[RING_SIZE / TFOS__FEED_RECORD_ALIGN + 1];
    struct tfos_feed_reader *reader = NULL;
    enum tfos_status status = TFOS_OK;
    bool holds = is_wanting(data, size);
    int held_count = 0;
    int control_fd = -1;

    require(tfos__feed_control_create(&control_fd, NULL) == TFOS_OK);
    require(tfos__feed_reader_open(control_fd, &reader, NULL) == TFOS_OK);
    status = tfos__feed_reader_add_channel(reader, 0, make_channel(data, size), NULL);
    require(status == TFOS_OK || status == TFOS_CORRUPT);
    // Each item takes 64 bytes of the ring, so that there cannot be more.
    for (int items = 0; status == TFOS_OK; items++) {
        require(items <= RING_SIZE / TFOS__FEED_RECORD_ALIGN);
        struct tfos_feed_item *item = &held[held_count];
        // One that holds batches waits until they are out of the way.
        status = tfos_feed_reader_next(reader, held_count > 0 ? DETACHMENT_MS : 0, item, NULL);
        if (status != TFOS_OK || item->kind != TFOS_FEED_BATCH)
            continue;
        walk(&item->schema, &item->array);
        if (holds)
            held_count++;
        else
            release(item);
    }
    for (int i = 0; i < held_count; i++)
        release(&held[i]);
    require(status == TFOS_AGAIN || status == TFOS_CORRUPT || status == TFOS_UNSUPPORTED);
    tfos__feed_reader_close(reader);
    return 0;
}
