// SPDX-License-Identifier: Apache-2.0
// What all streams have in common.
#include <tfos/stream.h>

void tfos_stream_close(struct tfos_stream *stream)
{
    if (stream)
        stream->close(stream);
}
