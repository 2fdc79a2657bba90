// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.util;

import java.util.zip.CRC32C;
import java.util.zip.Checksum;

/** CRC-32C, and its masked form, the checksum of TFRecord files: rotated by 15 bits, with a constant added. */
public class Crc32C implements Checksum {
    private static final int ROTATION = 15;
    private static final int DELTA = 0xa282ead8;

    private final CRC32C checksum = new CRC32C();

    /** The masked checksum of bytes. */
    public static int maskedCrc32c(byte[] data) {
        return maskedCrc32c(data, 0, data.length);
    }

    public static int maskedCrc32c(byte[] data, int offset, int length) {
        Crc32C checksum = new Crc32C();
        checksum.update(data, offset, length);
        return checksum.getMaskedValue();
    }

    public static int mask(int crc) {
        return Integer.rotateRight(crc, ROTATION) + DELTA;
    }

    /** What {@link #mask} was given. */
    public static int unmask(int maskedCrc) {
        return Integer.rotateLeft(maskedCrc - DELTA, ROTATION);
    }

    public int getMaskedValue() {
        return mask(getIntValue());
    }

    public int getIntValue() {
        return (int) getValue();
    }

    @Override
    public void update(int b) {
        checksum.update(b);
    }

    @Override
    public void update(byte[] b, int off, int len) {
        checksum.update(b, off, len);
    }

    @Override
    public long getValue() {
        return checksum.getValue();
    }

    @Override
    public void reset() {
        checksum.reset();
    }
}
