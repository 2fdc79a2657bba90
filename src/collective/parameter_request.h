// SPDX-License-Identifier: Apache-2.0
/// What a rank asks of rank 0's parameters over TCP (docs/protocol.md, "Collectives: parameters").
#ifndef TFOS_COLLECTIVE_PARAMETER_REQUEST_H
#define TFOS_COLLECTIVE_PARAMETER_REQUEST_H

#include <stdint.h>
#include <tfos/status.h>

#define TFOS__COLLECTIVE_REQUEST_SIZE 16 ///< bytes

enum tfos__collective_request_kind {
    /// Adds what follows, and waits for the bound; the answer is the values.
    TFOS__COLLECTIVE_PUSH_MORE = 1,
    /// Adds what follows, and waits until no rank pushes more; the answer is the values, and the end.
    TFOS__COLLECTIVE_PUSH_LAST
};

struct tfos__collective_request {
    enum tfos__collective_request_kind kind;
    int64_t steps; ///< since the last push; 0 of the last
};

void tfos__collective_request_encode(const struct tfos__collective_request *request,
                                     unsigned char bytes[TFOS__COLLECTIVE_REQUEST_SIZE]);

/// CORRUPT for bytes that are no request. `staleness`: the most steps there can be.
enum tfos_status
tfos__collective_request_decode(const unsigned char bytes[TFOS__COLLECTIVE_REQUEST_SIZE],
                                int64_t staleness, struct tfos__collective_request *request,
                                struct tfos_error *err);

#endif
