// SPDX-License-Identifier: Apache-2.0
// A TFRecord file from a stranger: the first byte chooses how it is read. Nothing may crash, loop
// for ever or give out what has no right checksum.
#include <stdlib.h>
#include <string.h>
#include <tfos/record.h>

struct input {
    struct tfos_stream base;
    const uint8_t *data;
    size_t size, at, step;
};

static enum tfos_status read_input(struct tfos_stream *base, void *data, size_t size, size_t *count,
                                   struct tfos_error *err)
{
    struct input *input = (struct input *)base;
    size_t left = input->at < input->size ? input->size - input->at : 0;
    (void)err;
    if (size > input->step)
        size = input->step;
    *count = size < left ? size : left;
    if (*count == 0)
        return TFOS_END;
    memcpy(data, input->data + input->at, *count);
    input->at += *count;
    return TFOS_OK;
}

static enum tfos_status seek_input(struct tfos_stream *base, uint64_t offset,
                                   struct tfos_error *err)
{
    (void)err;
    ((struct input *)base)->at = offset;
    return TFOS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct input input = {.base = {.read = read_input, .seek = seek_input},
                          .data = data + 1,
                          .size = size - 1,
                          .step = data[0] & 0x80 ? 7 : SIZE_MAX};
    struct tfos_record_reader_options options = {
        .compression = (enum tfos_compression)(data[0] & 3),
        .mode = (enum tfos_record_mode)(data[0] % 3),
        .max_record_size = 1 << 16,
        .begin = data[0] & 0x20 ? size / 3 : 0,
        .end = data[0] & 0x40 ? size / 2 : 0,
    };
    struct tfos_record_reader *reader = NULL;
    if (tfos_record_reader_open(&input.base, &options, &reader, NULL) < 0)
        return 0;
    struct tfos_view records[5];
    size_t count = 0;
    while (tfos_record_reader_next_batch(reader, records, 5, &count, NULL) == TFOS_OK)
        for (size_t i = 0; i < count; i++) {
            struct tfos_record_frame frame;
            tfos_record_frame_init(&frame, records[i].data, records[i].size);
            const uint8_t *bytes = records[i].data;
            if (memcmp(bytes - sizeof(frame.head), frame.head, sizeof(frame.head)) != 0 ||
                memcmp(bytes + records[i].size, frame.tail, sizeof(frame.tail)) != 0)
                abort();
        }
    tfos_record_reader_close(reader);
    return 0;
}
