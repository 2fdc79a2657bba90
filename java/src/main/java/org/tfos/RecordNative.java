// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.nio.ByteBuffer;

/**
 * The natives for the records of TFRecord files, to be called after {@link NativeLibrary#load}. Failures are TfosExceptions, and what a stream
 * throws. Readers and writers borrow their stream.
 */
final class RecordNative {
    private RecordNative() {}

    /**
     * Opens a reader of the records whose frames begin in a range. A compressed file belongs as a whole to the range that begins with it; 0 is
     * the handle of any other. {@code mode} is a {@code tfos_record_mode}, {@code name} the file's for messages; {@code limits} are where the
     * range begins, where it ends (0: at the file's end), and the largest size of a record.
     */
    static native long openReader(ByteSource source, byte[] name, int mode, long[] limits, RawRecordReader reader);

    /**
     * The next records; null at the end. They are in the reader's memory until the next call. {@code places} gets how many there are, and for
     * each where it begins in the buffer, and its size. {@code reader} is notified of damage.
     */
    static native ByteBuffer next(long handle, int[] places, RawRecordReader reader);

    static native void closeReader(long handle);

    /** {@code compression} is a {@code tfos_compression}, {@code level} 1 to 9, or 0 for the usual one. */
    static native long openWriter(ByteSink sink, int compression, int level);

    /** Where records are put for {@link #append}: for each its size, 4 bytes in the machine's order, and its bytes. Memory of the writer's. */
    static native ByteBuffer stage(long handle);

    /** Appends the records in the first {@code size} bytes of the stage. */
    static native void append(long handle, int size);

    /** Appends a record that is too large for the stage. */
    static native void appendLarge(long handle, byte[] data, int offset, int size);

    static native void finish(long handle);

    static native void closeWriter(long handle);

    /** Whether a file that begins with {@code first}, 12 bytes or all, is for the codec that there is for its name. */
    static native boolean isForCodec(byte[] name, byte[] first);
}
