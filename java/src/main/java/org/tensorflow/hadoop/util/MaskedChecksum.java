// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.util;

import java.util.zip.CRC32C;

/** The checksum of TFRecord files: CRC-32C, rotated by 15 bits, with a constant added. */
final class MaskedChecksum {
    private static final int DELTA = 0xa282ead8;

    private MaskedChecksum() {}

    static int of(byte[] data, int offset, int size) {
        CRC32C checksum = new CRC32C();
        checksum.update(data, offset, size);
        return Integer.rotateRight((int) checksum.getValue(), 15) + DELTA;
    }
}
