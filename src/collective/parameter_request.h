// SPDX-License-Identifier: Apache-2.0
/// What a rank asks of rank 0's parameters over TCP (docs/protocol.md, "Collectives: parameters").
#ifndef TFOS_COLLECTIVE_PARAMETER_REQUEST_H
#define TFOS_COLLECTIVE_PARAMETER_REQUEST_H

#include <stdint.h>
#include <tfos/status.h>

#define TFOS__COLLECTIVE_REQUEST_SIZE 16 ///< bytes

enum tfos__collective_request_kind {
    TFOS__COLLECTIVE_PUSH = 1,   ///< adds what follows
    TFOS__COLLECTIVE_PULL,       ///< waits for the bound; the answer is the values
    TFOS__COLLECTIVE_PULL_LAST,  ///< waits until all ranks have asked so; the answer is the values
    TFOS__COLLECTIVE_AWAIT_ROWS, ///< the rank waits for its data
    TFOS__COLLECTIVE_GOT_ROWS    ///< it has them
};

struct tfos__collective_request {
    enum tfos__collective_request_kind kind;
    int64_t steps; ///< of a push, since the pull; of a pull, until the push, 1 or more; else 0
};

void tfos__collective_request_encode(const struct tfos__collective_request *request,
                                     unsigned char bytes[TFOS__COLLECTIVE_REQUEST_SIZE]);

/// CORRUPT for bytes that are no request. `staleness`: the most steps there can be.
enum tfos_status
tfos__collective_request_decode(const unsigned char bytes[TFOS__COLLECTIVE_REQUEST_SIZE],
                                int64_t staleness, struct tfos__collective_request *request,
                                struct tfos_error *err);

#endif
