// SPDX-License-Identifier: Apache-2.0
// Frames of MNIST's size from memory, both checksums of each looked at, against memcpy of the same
// bytes into as large a block as the reader's. Rounds of both alternate; medians of CPU time are
// compared. Prints one JSON line.
#include <tfos/record.h>

#include "figures.h"

#define RECORD_SIZE 3200
#define RECORD_COUNT 60000
#define BLOCK_SIZE (256u << 10)
#define VIEW_COUNT 256
#define ROUNDS 9
#define GOAL 0.6

/// A file in memory.
struct memory {
    struct tfos_stream base;
    char *data;
    size_t size, at;
};

static enum tfos_status read_memory(struct tfos_stream *base, void *data, size_t size,
                                    size_t *count, struct tfos_error *err)
{
    struct memory *memory = (struct memory *)base;
    size_t left = memory->size - memory->at;

    (void)err;
    *count = size < left ? size : left;
    memcpy(data, memory->data + memory->at, *count);
    memory->at += *count;
    return *count > 0 ? TFOS_OK : TFOS_END;
}

static double cpu_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct memory make_file(void)
{
    struct memory memory = {.base = {.read = read_memory}};
    struct tfos_record_frame frame;
    uint32_t state = 1;

    memory.size = (size_t)RECORD_COUNT * (RECORD_SIZE + sizeof(frame));
    memory.data = malloc(memory.size);
    if (!memory.data) {
        fputs("frame_checks: no memory\n", stderr);
        exit(1);
    }
    for (char *at = memory.data; at < memory.data + memory.size;) {
        char *record = at + sizeof(frame.head);
        for (size_t i = 0; i < RECORD_SIZE; i++)
            record[i] = (char)((state = state * 1664525u + 1013904223u) >> 24);
        tfos_record_frame_init(&frame, record, RECORD_SIZE);
        memcpy(at, frame.head, sizeof(frame.head));
        memcpy(record + RECORD_SIZE, frame.tail, sizeof(frame.tail));
        at = record + RECORD_SIZE + sizeof(frame.tail);
    }
    return memory;
}

static double time_frames(struct memory *memory)
{
    struct tfos_error err;
    struct tfos_record_reader *reader = NULL;
    struct tfos_view records[VIEW_COUNT];
    size_t count = 0;
    double begin = cpu_s();
    enum tfos_status status;

    memory->at = 0;
    check(tfos_record_reader_open(&memory->base, NULL, &reader, &err), &err);
    do {
        status = tfos_record_reader_next_batch(reader, records, VIEW_COUNT, &count, &err);
        check(status, &err);
    } while (status == TFOS_OK);
    double taken = cpu_s() - begin;
    if (tfos_record_reader_get_counts(reader).records != RECORD_COUNT) {
        fputs("frame_checks: records are missing\n", stderr);
        exit(1);
    }
    tfos_record_reader_close(reader);
    return (double)memory->size / taken * 1e-9;
}

static double time_memcpy(const struct memory *memory, char *block)
{
    double begin = cpu_s();

    for (size_t at = 0; at < memory->size; at += BLOCK_SIZE) {
        size_t left = memory->size - at;
        memcpy(block, memory->data + at, left < BLOCK_SIZE ? left : BLOCK_SIZE);
        // The copies must all happen.
        __asm__ volatile("" ::: "memory");
    }
    return (double)memory->size / (cpu_s() - begin) * 1e-9;
}

int main(void)
{
    static const struct figure figure = {"frame_checks", "3.2 KB", "GB/CPU/s", "memcpy", GOAL};
    struct memory memory = make_file();
    char *block = calloc(BLOCK_SIZE, 1);
    double frames[ROUNDS], copies[ROUNDS];

    if (!block)
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        frames[i] = time_frames(&memory);
        copies[i] = time_memcpy(&memory, block);
    }
    print_line(&figure, median(frames, ROUNDS), median(copies, ROUNDS));
    free(block);
    free(memory.data);
    return 0;
}
