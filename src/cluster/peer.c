// SPDX-License-Identifier: Apache-2.0
// The peer of a node or a feeder may be gone.
#include "cluster/peer.h"

void tfos__peer_send(struct tfos__peer *peer, json_t *message)
{
    if (peer)
        peer->send(peer, message);
    else
        json_decref(message);
}

void tfos__peer_end(struct tfos__peer *peer)
{
    peer->is_closing = true;
    if (peer->end)
        peer->end(peer);
}
