// SPDX-License-Identifier: Apache-2.0
package org.tfos;

/** The natives of a reader of records into columns, to be called after {@link NativeLibrary#load}. A handle is used by one thread at a time. */
final class ExampleReaderNative {
    /** Numbers of enum tfos_record_mode. */
    static final int STRICT = 0;
    static final int SKIP_RECORD = 1;
    static final int SKIP_FILE = 2;

    private ExampleReaderNative() {}

    /** Fails, by the column's name, when records of this type cannot be read as the struct ArrowSchema at {@code schema}. */
    static native void check(long schema, int type);

    /**
     * Starts to read. A file that turns out to be compressed is read whole by the range that begins at 0, and not by others.
     *
     * @param name the file, for messages
     * @param schema address of a struct ArrowSchema, which is copied
     * @param ignoreCase names of columns and features may differ in letter case
     * @param numbers of {@link RecordType}; a mode; where the range begins, and ends (0: with the file); rows of a batch, at most; bytes of the records of a batch, about
     * @return a handle; 0 when there is nothing in the range
     */
    static native long open(ByteSource source, byte[] name, long schema, boolean ignoreCase, long[] numbers);

    /** Puts the next batch into the empty struct ArrowArray at {@code array}. False at the end. */
    static native boolean next(long handle, long array);

    /** What was skipped since the last call, a line each, as far as there is room; null when there was nothing. */
    static native byte[] takeDamage(long handle);

    /** How many places were skipped so far. */
    static native long damageCount(long handle);

    /** How many bytes were skipped so far, frames included. */
    static native long skippedBytes(long handle);

    static native void close(long handle);
}
