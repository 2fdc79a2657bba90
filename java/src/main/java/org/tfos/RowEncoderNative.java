// SPDX-License-Identifier: Apache-2.0
package org.tfos;

/** The natives of an encoder of single rows, to be called after {@link NativeLibrary#load}. A handle is used by one thread at a time. */
final class RowEncoderNative {
    private RowEncoderNative() {}

    /**
     * @param schema address of a struct ArrowSchema, which is copied
     * @param type a number of {@link RecordType}
     * @return a handle
     */
    static native long open(long schema, int type);

    /** The record of the one row that lies at {@code address}, as {@link RowStage} lays it. */
    static native byte[] encode(long handle, long address, long size);

    static native void close(long handle);
}
