// SPDX-License-Identifier: Apache-2.0
// "TFPS", kind (1 byte), 3 zero bytes, steps (8 bytes, little-endian).
#include "collective/parameter_request.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "base/fail.h"

#define MAGIC "TFPS"

void tfos__collective_request_encode(const struct tfos__collective_request *request,
                                     unsigned char bytes[TFOS__COLLECTIVE_REQUEST_SIZE])
{
    uint64_t steps = htole64((uint64_t)request->steps);
    memset(bytes, 0, TFOS__COLLECTIVE_REQUEST_SIZE);
    memcpy(bytes, MAGIC, 4);
    bytes[4] = (unsigned char)request->kind;
    memcpy(bytes + 8, &steps, sizeof(steps));
}

enum tfos_status
tfos__collective_request_decode(const unsigned char bytes[TFOS__COLLECTIVE_REQUEST_SIZE],
                                int64_t staleness, struct tfos__collective_request *request,
                                struct tfos_error *err)
{
    static const unsigned char zeros[3];
    uint64_t steps;
    memcpy(&steps, bytes + 8, sizeof(steps));
    *request =
        (struct tfos__collective_request){.kind = bytes[4], .steps = (int64_t)le64toh(steps)};
    int64_t least = request->kind == TFOS__COLLECTIVE_PULL;
    int64_t most = request->kind <= TFOS__COLLECTIVE_PULL ? staleness : 0;
    const char *fault = NULL;
    if (memcmp(bytes, MAGIC, 4) != 0 || memcmp(bytes + 5, zeros, 3) != 0)
        fault = "beginning";
    else if (request->kind < TFOS__COLLECTIVE_PUSH || request->kind > TFOS__COLLECTIVE_GOT_ROWS)
        fault = "kind";
    else if (request->steps < least || request->steps > most)
        fault = "number of steps";
    if (!fault)
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT, "a request for parameters has no valid %s", fault);
}
