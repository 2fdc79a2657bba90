// SPDX-License-Identifier: Apache-2.0
/// The feed's figures as TensorBoard's scalars: event files in its log directory. The run "tfos"
/// has those of the whole cluster, the runs "tfos/worker_0", ... those of each node, under the same
/// tags, so that TensorBoard shows them in one diagram. A step is a second of the cluster's life.
#ifndef TFOS_NODE_EVENT_WRITER_H
#define TFOS_NODE_EVENT_WRITER_H

#include <jansson.h>
#include <stdint.h>
#include <tfos/status.h>

/// Where event files go; strings are borrowed.
struct tfos__node_event_writer {
    const char *log_directory; ///< made when it does not exist
    const char *host;          ///< for the names of the files
    int64_t begun_s;           ///< the same: when this process began to write, by the wall clock
};

/// Appends one point a figure from the driver's message `figures`. What is not known (null) is left
/// out. IO names the file.
enum tfos_status tfos__node_event_writer_write(const struct tfos__node_event_writer *writer,
                                               const json_t *figures, struct tfos_error *err);

#endif
