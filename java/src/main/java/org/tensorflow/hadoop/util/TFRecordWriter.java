// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.util;

import java.io.DataOutput;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Writes records to any {@link DataOutput}. For files {@link org.tfos.RawRecordWriter} is faster. */
public class TFRecordWriter {
    private static final int HEAD = Long.BYTES + Integer.BYTES; // a record's size and the checksum of that

    private final DataOutput output;

    public TFRecordWriter(DataOutput output) {
        this.output = output;
    }

    public void write(byte[] record) throws IOException {
        write(record, 0, record.length);
    }

    public void write(byte[] record, int offset, int length) throws IOException {
        ByteBuffer head = ByteBuffer.allocate(HEAD).order(ByteOrder.LITTLE_ENDIAN).putLong(length);
        output.write(head.putInt(Crc32C.maskedCrc32c(head.array(), 0, Long.BYTES)).array());
        output.write(record, offset, length);
        output.writeInt(Integer.reverseBytes(Crc32C.maskedCrc32c(record, offset, length)));
    }
}
