// SPDX-License-Identifier: Apache-2.0
/// tfos stop: asks the driver of a cluster to end it in order.
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <tfos.h>

#include "commands.h"
#include "terminal.h"

#define REQUEST_TIMEOUT_MS 10000

int run_stop(int argc, char **argv)
{
    char *text;
    struct tfos_error err;
    if (argc < 1)
        return refuse_usage("stop needs a cluster: its id, the beginning of it, or its address, as "
                            "tfos status shows them");
    if (argc > 1 || argv[0][0] == '-')
        return refuse_usage("stop does not know \"%s\"", argv[argc > 1]);
    if (tfos_cluster_request_stop(argv[0], REQUEST_TIMEOUT_MS, &text, &err) < 0)
        return say_error(&err);
    json_t *answer = json_loads(text, 0, NULL);
    bool is_fed = json_is_true(json_object_get(answer, "feeding"));
    const char *id = json_string_value(json_object_get(answer, "cluster_id"));
    printf("cluster %s was asked to stop: %s\n", id ? id : argv[0],
           is_fed ? "nothing more is fed, and its functions come to the end of the feed"
                  : "its trainers have got SIGTERM, and get SIGKILL in 30 s");
    json_decref(answer);
    tfos_free(text);
    return 0;
}
