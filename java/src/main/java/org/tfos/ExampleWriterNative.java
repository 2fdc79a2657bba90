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
     * @param isExact numbers that would be rounded are refused
     * @return a handle
     */
    static native long open(ByteSink sink, long schema, int type, int compression, boolean isExact);

    /** Writes {@code rowCount} rows that lie at {@code address}, as {@link RowStage} lays them. */
    static native void append(long handle, long address, long size, long rowCount);

    /** Writes what is held back and finishes the sink. */
    static native void finish(long handle);

    /** For each column, fields of structs counted alone, the numbers that were rounded so far, and those of them that became infinite. */
    static native long[] losses(long handle);

    /** The name of one of these columns. */
    static native byte[] columnName(long handle, int column);

    static native void close(long handle);
}
