// SPDX-License-Identifier: Apache-2.0
/// TensorBoard beside the trainer. It is a convenience: whatever goes wrong with it is one warning,
/// and training goes on.
#ifndef TFOS_NODE_BOARD_H
#define TFOS_NODE_BOARD_H

#include "node/child.h"
#include "node/output.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/// All zero: not wanted or not started.
struct tfos__board {
    struct tfos__child child;
    struct tfos__output *output; ///< owned; NULL when not running
    int port;
    bool is_served;             ///< it was seen to accept connections
    int64_t probe_at;           ///< when to look next whether it does
    struct addrinfo *addresses; ///< owned; where it is to be looked for
    const struct addrinfo *probed;
    bool is_probing;
    int probe_fd; ///< owned while is_probing; writable once the connection is decided
    int64_t give_up_at;
    int64_t begun_s;     ///< when it was started, by the wall clock
    bool has_no_scalars; ///< the feed's figures could not be written
};

struct tfos__node;

/// Starts TensorBoard when the configuration asks for it and this node is the one to have it: the
/// chief or master, else worker:0.
void tfos__board_start(struct tfos__node *node);

/// Looks whether it serves, one address after the other, and gives it up when it never did.
void tfos__board_tick(struct tfos__node *node);

/// The look is decided: tells the driver its address if it serves.
void tfos__board_step(struct tfos__node *node);

/// When tick() has something to do.
int64_t tfos__board_due(const struct tfos__board *board);

/// Whether it shows the feed's figures, so that the driver is to send them.
bool tfos__board_wants_figures(const struct tfos__node *node);

/// Writes down the driver's message `figures` for it to show.
void tfos__board_show(struct tfos__node *node, const json_t *figures);

/// It has ended and was reaped.
void tfos__board_ended(struct tfos__node *node);

void tfos__board_close(struct tfos__board *board);

#endif
