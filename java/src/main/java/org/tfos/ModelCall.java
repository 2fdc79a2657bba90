// SPDX-License-Identifier: Apache-2.0
package org.tfos;

/** One task's calls of a model. Used by one thread. */
final class ModelCall implements AutoCloseable {
    private final LoadedModel model; // held
    private long handle;

    /** Takes over the hold on the model, also when it fails. */
    ModelCall(LoadedModel model, byte[] signature) {
        this.model = model;
        try {
            handle = TransformNative.open(model.handle(), signature);
        } finally {
            if (handle == 0) {
                model.release();
            }
        }
    }

    /** Adds the rows of the stage, which is empty afterwards, to the next batch. */
    void append(RowStage stage) {
        try {
            TransformNative.append(handle, stage.address(), stage.size(), stage.rowCount());
        } finally {
            stage.clear();
        }
    }

    /** Calls the model with the batch. */
    void run() {
        TransformNative.run(handle);
    }

    /** Fills the buffer with rows of results, as {@link TransformNative#nextRows} does. */
    long nextRows(byte[] buffer) {
        return TransformNative.nextRows(handle, buffer);
    }

    @Override
    public void close() {
        TransformNative.close(handle);
        handle = 0;
        model.release();
    }
}
