// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.util;

import java.io.DataInput;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Reads records from any {@link DataInput} or stream, and takes no byte from it that is not of the record: others may read on. For files
 * {@link org.tfos.RawRecordReader} is faster and knows more.
 */
public class TFRecordReader {
    private static final int HEAD = Long.BYTES + Integer.BYTES; // a record's size and the checksum of that

    private final DataInput input;
    private final boolean isChecked;

    /** {@code crcCheck}: whether checksums must be right. */
    public TFRecordReader(DataInput input, boolean crcCheck) {
        this.input = input;
        this.isChecked = crcCheck;
    }

    /** What programs call that were compiled with tensorflow-hadoop 1.14 and later; give it a buffered stream. */
    public TFRecordReader(InputStream input, boolean crcCheck) {
        this((DataInput) new DataInputStream(input), crcCheck);
    }

    /** Of what is both, such as Hadoop's FSDataInputStream. */
    public TFRecordReader(DataInputStream input, boolean crcCheck) {
        this((DataInput) input, crcCheck);
    }

    /**
     * The next record; null where the input ends before it.
     *
     * @throws EOFException the input ends within the record
     * @throws IOException a checksum is wrong, or the record too large for an array
     */
    public byte[] read() throws IOException {
        byte[] head = new byte[HEAD];
        try {
            head[0] = input.readByte();
        } catch (EOFException end) {
            return null;
        }
        input.readFully(head, 1, HEAD - 1);
        ByteBuffer numbers = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
        long size = numbers.getLong();
        check("a record's size", numbers.getInt(), head, Long.BYTES);
        if (size < 0 || size > Integer.MAX_VALUE - 8) {
            throw new IOException("a record of " + Long.toUnsignedString(size) + " bytes, which no array can hold");
        }
        byte[] record = new byte[(int) size];
        input.readFully(record);
        check("a record", Integer.reverseBytes(input.readInt()), record, record.length);
        return record;
    }

    private void check(String what, int checksum, byte[] data, int size) throws IOException {
        int right = Crc32C.maskedCrc32c(data, 0, size);
        if (isChecked && checksum != right) {
            throw new IOException(String.format("the checksum of %s is wrong: %08x, where it is %08x", what, checksum, right));
        }
    }
}
