// SPDX-License-Identifier: Apache-2.0
/// A TCP connection between two ranks, authenticated by the group's key: each side proves that it
/// holds the key, for this connection. In the clear, or under TLS.
#ifndef TFOS_COLLECTIVE_PEER_CONNECTION_H
#define TFOS_COLLECTIVE_PEER_CONNECTION_H

#include <stdbool.h>
#include <tfos/status.h>

#include "base/channel.h"
#include "base/cluster_key.h"

enum tfos__collective_purpose {
    TFOS__COLLECTIVE_CONTROL,   ///< to rank 0: heartbeats, failures
    TFOS__COLLECTIVE_RING,      ///< to the leader of the next host: data
    TFOS__COLLECTIVE_PARAMETERS ///< to rank 0: requests for parameters
};

/// What this rank shows to any peer.
struct tfos__collective_credentials {
    struct tfos__identity identity; ///< its id is borrowed
    const char *session;            ///< borrowed; the group's, not guessable
    int rank, size;
    bool is_trusted_network; ///< no TLS
};

struct tfos__collective_peer {
    struct tfos__channel *channel; ///< owned; NULL: none
    enum tfos__collective_purpose purpose;
    int rank; ///< the peer's; -1: it has not said hello
    bool is_server;
    bool is_proven; ///< both sides are: what follows is for the purpose
    char client_nonce[TFOS__KEY_PROOF_SIZE], server_nonce[TFOS__KEY_PROOF_SIZE];
};

/// Over the connected socket `fd`, which is taken over. `rank` and `purpose` are the client's
/// choice; a server hears them.
enum tfos_status tfos__collective_peer_open(struct tfos__collective_peer *peer, int fd,
                                            bool is_server, enum tfos__collective_purpose purpose,
                                            int rank,
                                            const struct tfos__collective_credentials *credentials,
                                            struct tfos_error *err);

/// Goes on with the proofs without waiting. OK: it is proven; AGAIN; DENIED when the peer does not
/// hold the key; CLOSED, CORRUPT.
enum tfos_status tfos__collective_peer_pump(struct tfos__collective_peer *peer,
                                            const struct tfos__collective_credentials *credentials,
                                            struct tfos_error *err);

/// A peer of zeros is accepted.
void tfos__collective_peer_close(struct tfos__collective_peer *peer);

#endif
