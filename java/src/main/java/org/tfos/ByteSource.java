// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.Seekable;
import org.apache.hadoop.io.compress.BlockDecompressorStream;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionInputStream;

/**
 * A stream of Java's that the native library reads, with the natives' {@code tfos__jni_stream_open_source()}. Who makes it closes it, after
 * the native object that reads from it. One thread at a time.
 */
public final class ByteSource implements AutoCloseable {
    private static final int CAPACITY = 1 << 18; // what the readers of records take at a time
    private static final int FIRST_SIZE = 12; // bytes that show how a file is compressed

    private final byte[] buffer = new byte[CAPACITY]; // read by the native library
    private final InputStream stream;
    private final String name; // for messages; null: unknown
    private long position;
    private boolean isBehindEnd;

    /** Reads from {@code stream} on, which this object owns. If it is {@link Seekable}, parts of it can be read. */
    public ByteSource(InputStream stream) {
        this(stream, null);
    }

    private ByteSource(InputStream stream, String name) {
        this.stream = stream;
        this.name = name;
    }

    /**
     * Opens a TFRecord file of any of Hadoop's file systems. Local files are read past their {@code .crc} files: what is damaged in a file with
     * checksums of its own can then be reported by its place, and skipped. A file that the native library does not read, and for whose name there
     * is a codec, is decompressed by that.
     */
    public static ByteSource open(Path path, Configuration configuration) throws IOException {
        FileSystem system = path.getFileSystem(configuration);
        FileSystem files = system instanceof ChecksumFileSystem ? ((ChecksumFileSystem) system).getRawFileSystem() : system;
        CompressionCodec codec = RecordSettings.foreignCodec(path, configuration);
        FSDataInputStream stream = files.open(path);
        if (codec == null) {
            return new ByteSource(stream, path.toString());
        }
        try {
            return open(path, stream, codec, files.getFileStatus(path).getLen());
        } catch (IOException | RuntimeException | LinkageError error) { // the library of a codec may not be here
            stream.close();
            throw new IOException(path + ": " + codec.getClass().getSimpleName() + ", which is for its name, cannot read it: " + error.getMessage()
                    + (error instanceof IOException ? "" : ": decompress it first"), error);
        }
    }

    private static ByteSource open(Path path, FSDataInputStream stream, CompressionCodec codec, long size) throws IOException {
        NativeLibrary.load();
        byte[] first = stream.readNBytes(FIRST_SIZE);
        stream.seek(0);
        if (!RecordNative.isForCodec(path.toString().getBytes(StandardCharsets.UTF_8), first)) {
            return new ByteSource(stream, path.toString());
        }
        InputStream decompressed = codec.createInputStream(stream);
        if (decompressed instanceof BlockDecompressorStream && !hasFirstBlock(first, size)) {
            throw new EOFException("its first block is not whole");
        }
        return new ByteSource(decompressed, path + ", decompressed");
    }

    /**
     * Whether all of the first block is there: its size, 0 in an empty file, and parts with their compressed sizes before them. Hadoop takes a
     * file that ends within it for an empty one, and any number for a size.
     */
    private static boolean hasFirstBlock(byte[] first, long size) {
        ByteBuffer sizes = ByteBuffer.wrap(first);
        if (first.length < Integer.BYTES || sizes.getInt() == 0) {
            return first.length == Integer.BYTES;
        }
        return first.length > 2 * Integer.BYTES && Integer.toUnsignedLong(sizes.getInt()) <= size - 2 * Integer.BYTES;
    }

    /** What messages call it; offsets are those in what it holds. */
    byte[] name() {
        return name.getBytes(StandardCharsets.UTF_8);
    }

    /** Whether parts of it can be read. */
    boolean canSeek() {
        return stream instanceof Seekable && !(stream instanceof CompressionInputStream);
    }

    /** The position in bytes: from where the stream was when this object was made, or, after a seek, from the file's beginning. */
    public long position() {
        return position;
    }

    /** Puts the next bytes to the buffer's beginning. How many, at least 1; -1 at the end. Called by the native library, as what follows. */
    private int fill() throws IOException {
        int count = isBehindEnd ? -1 : stream.read(buffer, 0, buffer.length);
        position += Math.max(count, 0);
        return count;
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
