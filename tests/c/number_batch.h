// SPDX-License-Identifier: Apache-2.0
/// A small batch to feed.
#ifndef TFOS_TEST_NUMBER_BATCH_H
#define TFOS_TEST_NUMBER_BATCH_H

#include <stdint.h>
#include <tfos/arrow.h>

/// A batch of `count` int64 rows from `first` on, in one column.
struct rows {
    int64_t values[256];
    const void *column_buffers[2];
    const void *struct_buffers[1];
    struct ArrowArray column, array;
    struct ArrowArray *columns[1];
    struct ArrowSchema column_schema, schema;
    struct ArrowSchema *fields[1];
};

static inline void make_rows(struct rows *rows, int64_t first, int64_t count)
{
    *rows = (struct rows){0};
    for (int64_t i = 0; i < count; i++)
        rows->values[i] = first + i;
    rows->column_buffers[1] = rows->values;
    rows->column =
        (struct ArrowArray){.length = count, .n_buffers = 2, .buffers = rows->column_buffers};
    rows->columns[0] = &rows->column;
    rows->array = (struct ArrowArray){.length = count,
                                      .n_buffers = 1,
                                      .n_children = 1,
                                      .buffers = rows->struct_buffers,
                                      .children = rows->columns};
    rows->column_schema = (struct ArrowSchema){.format = "l", .name = "x"};
    rows->fields[0] = &rows->column_schema;
    rows->schema =
        (struct ArrowSchema){.format = "+s", .name = "", .n_children = 1, .children = rows->fields};
}

#endif
