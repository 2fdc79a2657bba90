// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A stream of Java's that the native library writes, with the natives' {@code tfos__jni_stream_open_sink()}. Who makes it closes it, after the
 * native object that writes to it. One thread at a time.
 */
public final class ByteSink implements AutoCloseable {
    private static final int CAPACITY = 1 << 18;

    private final byte[] buffer = new byte[CAPACITY]; // written by the native library
    private final OutputStream stream;
    private final String name; // for messages; null: unknown
    private boolean isClosed;

    /** Writes to {@code stream}, which this object owns. */
    public ByteSink(OutputStream stream) {
        this(stream, null);
    }

    private ByteSink(OutputStream stream, String name) {
        this.stream = stream;
        this.name = name;
    }

    /** Creates a file in any of Hadoop's file systems, or replaces one. */
    public static ByteSink create(Path path, Configuration configuration) throws IOException {
        return new ByteSink(path.getFileSystem(configuration).create(path, true), path.toString());
    }

    /**
     * The same, but a local file gets no {@code .crc} file: {@link ByteSource#open} reads past those, as what is written has checksums of its own,
     * and another one costs a pass over the bytes, a second file, and writes of a few KB each.
     */
    static ByteSink createUnsummed(Path path, Configuration configuration) throws IOException {
        FileSystem system = path.getFileSystem(configuration);
        if (!(system instanceof ChecksumFileSystem)) {
            return new ByteSink(system.create(path, true), path.toString());
        }
        ChecksumFileSystem summed = (ChecksumFileSystem) system;
        FileSystem files = summed.getRawFileSystem();
        files.delete(summed.getChecksumFile(path), false); // that of a file which is replaced
        return new ByteSink(files.create(path, true), path.toString());
    }

    /** Writes the buffer's first bytes. Called by the native library, as is finish(). */
    private void drain(int size) throws IOException {
        try {
            stream.write(buffer, 0, size);
        } catch (IOException | FSError error) { // the latter from local disks
            throw failure(name, error);
        }
    }

    /** Nothing more comes. What goes wrong with the last bytes is thrown here, and not by close(), which may have to hide another failure. */
    private void finish() throws IOException {
        end();
    }

    private void end() throws IOException {
        isClosed = true;
        try {
            stream.close();
        } catch (IOException | FSError error) {
            throw failure(name, error);
        }
    }

    /** What has happened to a file, by its name, or to something that has none (null). */
    static IOException failure(String name, Throwable error) {
        Throwable cause = error instanceof FSError && error.getCause() != null ? error.getCause() : error;
        return new IOException((name == null ? "" : "cannot write " + name + ": ") + cause.getMessage(), error);
    }

    /** Ends the stream, also when it was given up: then the file, if it is one, is for its owner to remove. */
    @Override
    public void close() throws IOException {
        if (!isClosed) {
            end();
        }
    }
}
