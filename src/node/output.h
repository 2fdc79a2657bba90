// SPDX-License-Identifier: Apache-2.0
/// What a child writes to its stdout and stderr: copied byte for byte to the node's own (the
/// executor's log), and cut into lines for the driver. Bounded in memory whatever the child writes.
#ifndef TFOS_NODE_OUTPUT_H
#define TFOS_NODE_OUTPUT_H

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

#define TFOS__OUTPUT_LAST_LINES 50   ///< lines of stderr kept for the report of its end
#define TFOS__OUTPUT_LINE_SIZE 8192  ///< longer lines are cut to this many bytes
#define TFOS__OUTPUT_INTERVAL_MS 100 ///< least time between two batches of lines

enum tfos__node_output_stream { TFOS__OUTPUT_STDOUT, TFOS__OUTPUT_STDERR, TFOS__OUTPUT_STREAMS };

struct tfos__node_output;

/// Makes both pipes. `is_forwarding`: lines are also batched for take_lines().
enum tfos_status tfos__node_output_open(bool is_forwarding, struct tfos__node_output **out,
                                        struct tfos_error *err);

/// The end of a pipe that the child writes to; until close_writers(), which follows the spawn.
int tfos__node_output_writer_fd(const struct tfos__node_output *output,
                                enum tfos__node_output_stream stream);
void tfos__node_output_close_writers(struct tfos__node_output *output);

/// What to wait for before the next step(): the pipes, or the log where it is full.
void tfos__node_output_get_poll(const struct tfos__node_output *output,
                                struct pollfd slots[TFOS__OUTPUT_STREAMS]);

/// Copies and cuts what can be read now, a bounded amount.
void tfos__node_output_step(struct tfos__node_output *output);

/// The child has ended: takes all that it left in the pipes, waiting at most `timeout_ms` for a
/// full log, and ends the last line. What grandchildren write later is not waited for.
void tfos__node_output_finish(struct tfos__node_output *output, int64_t timeout_ms);

/// When take_lines() will have a batch; TFOS__NEVER when no line waits.
int64_t tfos__node_output_due(const struct tfos__node_output *output);

/// The lines that wait, an array of [stream, text] that the caller owns, or NULL. The last element
/// counts the lines left out when the child wrote more than could be kept.
json_t *tfos__node_output_take_lines(struct tfos__node_output *output);

/// The last lines of stderr, oldest first: a new array, or NULL when out of memory.
json_t *tfos__node_output_get_last_lines(const struct tfos__node_output *output);

/// From now on the lines of stderr are also gathered (up to 16 KiB) until take_capture(), which
/// gives them to the caller (tfos__free()), or NULL when there were none.
void tfos__node_output_start_capture(struct tfos__node_output *output);
char *tfos__node_output_take_capture(struct tfos__node_output *output);

/// NULL is accepted.
void tfos__node_output_close(struct tfos__node_output *output);

#endif
