// SPDX-License-Identifier: Apache-2.0
/// A batch of one int64 column, as Arrow has it: what the benches in C feed.
#ifndef TFOS_BENCH_NUMBER_COLUMN_H
#define TFOS_BENCH_NUMBER_COLUMN_H

#include <stdint.h>
#include <tfos/arrow.h>

/// Points into itself: it must not move.
struct number_column {
    struct ArrowSchema schema, column_schema, *schema_children[1];
    struct ArrowArray array, column, *array_children[1];
    const void *column_buffers[2], *buffers[1];
};

/// `values` are borrowed.
static inline void number_column_init(struct number_column *numbers, const int64_t *values,
                                      int64_t count)
{
    *numbers = (struct number_column){.column_schema = {.format = "l", .name = "n"},
                                      .schema_children = {&numbers->column_schema},
                                      .array_children = {&numbers->column},
                                      .column_buffers = {NULL, values}};
    numbers->schema = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = 1, .children = numbers->schema_children};
    numbers->column =
        (struct ArrowArray){.length = count, .n_buffers = 2, .buffers = numbers->column_buffers};
    numbers->array = (struct ArrowArray){.length = count,
                                         .n_buffers = 1,
                                         .buffers = numbers->buffers,
                                         .n_children = 1,
                                         .children = numbers->array_children};
}

#endif
