// SPDX-License-Identifier: Apache-2.0
// A queue of reads, of which the oldest has rows left.
#include "dataset/read_log.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

enum tfos_status tfos__read_log_init(struct tfos__read_log *log, int64_t lane_count,
                                     struct tfos_error *err)
{
    *log = (struct tfos__read_log){.lane_count = lane_count};
    log->places = tfos__alloc((size_t)lane_count, sizeof *log->places);
    if (!log->places)
        return tfos__no_memory(err, "dataset", "files");
    for (int64_t i = 0; i < lane_count; i++)
        log->places[i].file = i;
    return TFOS_OK;
}

void tfos__read_log_restart(struct tfos__read_log *log)
{
    log->begin = log->end = 0;
    log->first = 0;
}

enum tfos_status tfos__read_log_add(struct tfos__read_log *log, const struct tfos__read *read,
                                    struct tfos_error *err)
{
    if (log->end == log->capacity && log->begin > log->capacity / 2) {
        log->end -= log->begin;
        memmove(log->reads, log->reads + log->begin, log->end * sizeof *log->reads);
        log->begin = 0;
    }
    if (log->end == log->capacity) {
        size_t capacity = log->capacity * 2 + 16;
        struct tfos__read *reads = tfos__realloc(log->reads, capacity, sizeof *reads);
        if (!reads)
            return tfos__no_memory(err, "dataset", "files");
        log->reads = reads;
        log->capacity = capacity;
    }
    log->reads[log->end++] = *read;
    return TFOS_OK;
}

void tfos__read_log_use(struct tfos__read_log *log, int64_t number, int64_t count)
{
    log->reads[log->begin + (size_t)(number - log->first)].left -= count;
    for (; log->begin < log->end && log->reads[log->begin].left == 0; log->begin++, log->first++) {
        const struct tfos__read *read = &log->reads[log->begin];
        log->places[read->lane] = read->behind;
        log->turn = (read->lane + 1) % log->lane_count;
        log->row_count += read->row_count;
    }
}

void tfos__read_log_clear(struct tfos__read_log *log)
{
    tfos__free(log->places);
    tfos__free(log->reads);
    *log = (struct tfos__read_log){0};
}
