// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.compress.CompressionCodec;

/** Writes a TFRecord file. Records are gathered in native memory. One thread at a time. */
public final class RawRecordWriter implements AutoCloseable {
    private static final int HEADER = Integer.BYTES; // before each record in the stage

    private final ByteSink sink;
    private final ByteBuffer stage;
    private long handle;
    private boolean hasFailed;

    /**
     * Creates a file in any of Hadoop's file systems, or replaces one.
     *
     * @param codec one of {@link RecordSettings#codec}, or null for none
     */
    public RawRecordWriter(Path file, CompressionCodec codec, Configuration configuration) throws IOException {
        NativeLibrary.load();
        sink = ByteSink.create(file, configuration);
        try {
            handle = RecordNative.openWriter(sink, RecordSettings.compression(codec).ordinal(), RecordSettings.level(configuration));
            stage = RecordNative.stage(handle).order(ByteOrder.nativeOrder());
        } catch (TfosException error) {
            sink.close();
            throw new IOException(error.getMessage(), error);
        }
    }

    /** Appends a record, which is copied. */
    public void append(byte[] data, int offset, int size) throws IOException {
        if (size > stage.remaining() - HEADER) {
            flush();
        }
        if (size > stage.remaining() - HEADER) {
            call(() -> RecordNative.appendLarge(handle, data, offset, size));
        } else {
            stage.putInt(size).put(data, offset, size);
        }
    }

    private void flush() throws IOException {
        int size = stage.position();
        stage.clear();
        call(() -> RecordNative.append(handle, size));
    }

    /** Nothing more comes: when this returns, the file is whole. */
    public void finish() throws IOException {
        flush();
        call(() -> RecordNative.finish(handle));
    }

    private interface Call {
        void run() throws IOException;
    }

    private void call(Call call) throws IOException {
        if (handle == 0 || hasFailed) {
            throw new IOException("a TFRecord file cannot be written to after it was closed, or writing has failed");
        }
        hasFailed = true;
        try {
            call.run();
            hasFailed = false;
        } catch (TfosException error) {
            throw new IOException(error.getMessage(), error);
        }
    }

    /** What Hadoop's writers do at their end: finishes the file, unless a call has failed, and closes it. */
    public void end() throws IOException {
        try (RawRecordWriter self = this) {
            if (!self.hasFailed && handle != 0) {
                self.finish();
            }
        }
    }

    /** Without a {@link #finish} before, what has been written is not whole. */
    @Override
    public void close() throws IOException {
        if (handle != 0) {
            RecordNative.closeWriter(handle);
            handle = 0;
        }
        sink.close();
    }
}
