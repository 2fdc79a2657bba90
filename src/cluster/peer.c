// SPDX-License-Identifier: Apache-2.0
// Sending to a peer that may be gone.
#include "cluster/peer.h"

void tfos__peer_send(struct tfos__peer *peer, json_t *message)
{
    if (peer)
        peer->send(peer, message);
    else
        json_decref(message);
}
