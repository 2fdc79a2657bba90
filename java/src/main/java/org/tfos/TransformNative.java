// SPDX-License-Identifier: Apache-2.0
package org.tfos;

/**
 * The natives of transforms, to be called after {@link NativeLibrary#load}. Text is UTF-8; a handle is an address. That of a model serves any number
 * of threads, that of a call one at a time. Failures are TfosExceptions.
 */
final class TransformNative {
    private TransformNative() {}

    /**
     * Loads a SavedModel.
     *
     * @param tensorflow the folder of TensorFlow's Python package
     * @param path on this machine
     * @param tags a JSON array
     * @param threads of an operation
     */
    static native long load(byte[] tensorflow, byte[] path, byte[] tags, int threads);

    /** After all its calls have been closed. */
    static native void unload(long model);

    /** Prepares calls; {@code signature} as {@link TransformRelation} takes it. */
    static native long open(long model, byte[] signature);

    /** Adds {@code rowCount} rows that lie at {@code address}, in the form of {@link RowStage}, to the next batch. */
    static native void append(long handle, long address, long size, long rowCount);

    /** Calls the model with the rows that were appended. */
    static native void run(long handle);

    /**
     * Fills {@code buffer} with rows of results, as {@link RowStage} lays them, and returns their bytes; -1 when there are no more of this batch;
     * other negative numbers say what size of buffer the next row needs.
     */
    static native long nextRows(long handle, byte[] buffer);

    static native void close(long handle);
}
