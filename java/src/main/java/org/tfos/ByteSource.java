// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.Seekable;

/**
 * A stream of Java's that the native library reads, with the natives' {@code tfos__jni_stream_open_source()}. Who makes it closes it, after
 * the native object that reads from it. One thread at a time.
 */
public final class ByteSource implements AutoCloseable {
    private static final int CAPACITY = 1 << 18; // what the readers of records take at a time

    private final byte[] buffer = new byte[CAPACITY]; // read by the native library
    private final InputStream stream;
    private long position;
    private boolean isBehindEnd;

    /** Reads from {@code stream} on, which this object owns. If it is {@link Seekable}, parts of it can be read. */
    public ByteSource(InputStream stream) {
        this.stream = stream;
    }

    /**
     * Opens a file of any of Hadoop's file systems. Local files are read past their {@code .crc} files: what is damaged in a file with checksums
     * of its own can then be told by its place, and passed over.
     */
    public static ByteSource open(Path path, Configuration configuration) throws IOException {
        FileSystem system = path.getFileSystem(configuration);
        FileSystem files = system instanceof ChecksumFileSystem ? ((ChecksumFileSystem) system).getRawFileSystem() : system;
        return new ByteSource(files.open(path));
    }

    /** Where the stream stands: bytes, counted from where it was when it came here, or from the file's beginning after a seek. */
    public long position() {
        return position;
    }

    /** Puts the next bytes to the buffer's beginning. How many, at least 1; -1 at the end. Called by the native library, as what follows. */
    private int fill() throws IOException {
        int count = isBehindEnd ? -1 : stream.read(buffer, 0, buffer.length);
        position += Math.max(count, 0);
        return count;
    }

    private boolean canSeek() {
        return stream instanceof Seekable;
    }

    /** The next bytes are those at {@code offset}, also when that is at or behind the end: there are none then. */
    private void seek(long offset) throws IOException {
        position = offset;
        try {
            ((Seekable) stream).seek(offset);
            isBehindEnd = false;
        } catch (EOFException error) { // where HDFS refuses it
            isBehindEnd = true;
        }
    }

    @Override
    public void close() throws IOException {
        stream.close();
    }
}
