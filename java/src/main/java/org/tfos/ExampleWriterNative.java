// SPDX-License-Identifier: Apache-2.0
package org.tfos;

/** The natives of a writer of Spark's rows as records, to be called after {@link NativeLibrary#load}. A handle is used by one thread at a time. */
final class ExampleWriterNative {
    private ExampleWriterNative() {}

    /** Fails, by the column's name, when rows of the struct ArrowSchema at {@code schema} cannot be written as records of this type. */
    static native void check(long schema, int type);

    /**
     * @param schema address of a struct ArrowSchema, which is copied
     * @param type a number of {@link RecordType}
     * @param compression a number of {@link RecordCompression}
     * @return a handle
     */
    static native long open(ByteSink sink, long schema, int type, int compression, boolean allowRounding);

    /** Writes {@code rowCount} rows that lie at {@code address}, as {@link RowStage} lays them. */
    static native void append(long handle, long address, long size, long rowCount);

    /** Writes what is held back and finishes the sink. How many values were rounded. */
    static native long finish(long handle);

    static native void close(long handle);
}
