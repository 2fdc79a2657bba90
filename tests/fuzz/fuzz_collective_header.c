// SPDX-License-Identifier: Apache-2.0
// The header of a message between hosts, of any bytes: what is taken says of itself only what can
// be, and is written again as the same bytes.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collective/descriptor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char header[TFOS__COLLECTIVE_HEADER_SIZE] = {0}, again[TFOS__COLLECTIVE_HEADER_SIZE];
    char text[TFOS__COLLECTIVE_TEXT_SIZE];
    struct tfos__collective_descriptor descriptor, other;
    struct tfos_error err;

    memcpy(header, data, size < sizeof(header) ? size : sizeof(header));
    if (tfos__collective_descriptor_decode(header, &descriptor, &err) != TFOS_OK)
        return 0;
    require(strlen(tfos__collective_descriptor_print(&descriptor, text)) < sizeof(text));
    require(strlen(tfos__collective_descriptor_label(&descriptor, text)) < sizeof(text));
    require(tfos__collective_descriptor_matches(&descriptor, &descriptor));
    tfos__collective_descriptor_encode(&descriptor, again);
    require(memcmp(header, again, sizeof(header)) == 0);
    require(tfos__collective_descriptor_decode(again, &other, &err) == TFOS_OK);
    require(tfos__collective_descriptor_matches(&descriptor, &other));
    return 0;
}
