// SPDX-License-Identifier: Apache-2.0
// Feeds batches of 1 MB to a node: 128 rows of 2,048 floats, which are 0 and 1 in turn. For each
// line of its input, "ADDRESS CLUSTER KEY FEED BATCHES", it feeds a partition and answers "fed".
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tfos/feeder.h>

#include "figures.h"

#define ROWS 128
#define VALUES 2048

struct batch {
    float values[ROWS * VALUES];
    const void *value_buffers[2], *list_buffers[1], *root_buffers[1];
    struct ArrowArray value, list, array;
    struct ArrowArray *list_children[1], *children[1];
    struct ArrowSchema value_schema, list_schema, schema;
    struct ArrowSchema *list_schemas[1], *schemas[1];
};

static void make_batch(struct batch *batch)
{
    for (int64_t i = 0; i < ROWS * VALUES; i++)
        batch->values[i] = (float)(i % 2);
    batch->value_buffers[1] = batch->values;
    batch->value = (struct ArrowArray){
        .length = ROWS * VALUES, .n_buffers = 2, .buffers = batch->value_buffers};
    batch->list_children[0] = &batch->value;
    batch->list = (struct ArrowArray){.length = ROWS,
                                      .n_buffers = 1,
                                      .n_children = 1,
                                      .buffers = batch->list_buffers,
                                      .children = batch->list_children};
    batch->children[0] = &batch->list;
    batch->array = (struct ArrowArray){.length = ROWS,
                                       .n_buffers = 1,
                                       .n_children = 1,
                                       .buffers = batch->root_buffers,
                                       .children = batch->children};
    batch->value_schema = (struct ArrowSchema){.format = "f", .name = "item"};
    batch->list_schemas[0] = &batch->value_schema;
    batch->list_schema = (struct ArrowSchema){
        .format = "+w:2048", .name = "x", .n_children = 1, .children = batch->list_schemas};
    batch->schemas[0] = &batch->list_schema;
    batch->schema = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = 1, .children = batch->schemas};
}

static void feed(const struct tfos_feeder_options *options, int64_t count,
                 const struct batch *batch)
{
    struct tfos_feeder *feeder = NULL;
    struct tfos_error err;

    check(tfos_feeder_open(options, &feeder, &err), &err);
    for (int64_t i = 0; i < count; i++)
        check(tfos_feeder_append(feeder, &batch->schema, &batch->array, &err), &err);
    check(tfos_feeder_finish(feeder, &err), &err);
    tfos_feeder_close(feeder);
}

int main(void)
{
    static struct batch batch;
    char address[128], cluster_id[128], key[65];
    int64_t number = 0, count = 0;

    make_batch(&batch);
    while (scanf("%127s %127s %64s %" SCNd64 " %" SCNd64, address, cluster_id, key, &number,
                 &count) == 5) {
        feed(
            &(struct tfos_feeder_options){
                .address = address, .cluster_id = cluster_id, .key = key, .feed = number},
            count, &batch);
        puts("fed");
        fflush(stdout);
    }
    return 0;
}
