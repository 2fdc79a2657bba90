// SPDX-License-Identifier: Apache-2.0
// A request for parameters, of any bytes: what is taken says only what can be, and is written again
// as the same bytes.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collective/parameter_request.h"

#define STALENESS 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char bytes[TFOS__COLLECTIVE_REQUEST_SIZE] = {0}, again[TFOS__COLLECTIVE_REQUEST_SIZE];
    struct tfos__collective_request request;
    struct tfos_error err;

    memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
    if (tfos__collective_request_decode(bytes, STALENESS, &request, &err) != TFOS_OK)
        return 0;
    bool may_have_steps = request.kind <= TFOS__COLLECTIVE_PULL;
    require(may_have_steps ? request.steps >= 0 && request.steps <= STALENESS : request.steps == 0);
    require(request.kind != TFOS__COLLECTIVE_PULL || request.steps > 0);
    tfos__collective_request_encode(&request, again);
    require(memcmp(bytes, again, sizeof(bytes)) == 0);
    return 0;
}
