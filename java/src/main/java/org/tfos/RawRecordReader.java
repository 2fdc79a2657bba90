// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.function.LongConsumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads the records of a TFRecord file, or of a range of one. One thread at a time. */
public final class RawRecordReader implements AutoCloseable {
    private static final Logger LOGGER = LoggerFactory.getLogger(RawRecordReader.class);
    private static final int BATCH_RECORDS = 1024;
    private static final int MAX_WARNINGS = 10; // a file

    private final Path file;
    private final ByteSource source;
    private final LongConsumer onDamage;
    private final int[] places = new int[1 + 2 * BATCH_RECORDS]; // written by the native library: the count, then place and size of each
    private ByteBuffer batch; // memory of the native reader's; null before the first call and after the last
    private int index; // of the present record, within the batch
    private long handle;
    private int damages;

    /**
     * Opens a file of any of Hadoop's file systems, plain, by gzip or zlib (found by its first bytes), or by the codec that there is for its name.
     * {@link RecordSettings} has the keys of {@code configuration}.
     *
     * @param begin where the range begins, in bytes; the records are those whose frames begin in it. A compressed file belongs to the range
     *     from 0, and other ranges have none of it.
     * @param end where it ends; 0: at the file's end
     * @param onDamage gets the number of bytes skipped, for each damage, after it has been logged
     * @throws IllegalArgumentException a setting has no meaning
     * @throws IOException what the file system says; damage at the beginning
     */
    public RawRecordReader(Path file, long begin, long end, Configuration configuration, LongConsumer onDamage) throws IOException {
        NativeLibrary.load();
        this.file = file;
        this.onDamage = onDamage;
        int mode = RecordSettings.mode(configuration);
        long maxRecordSize = RecordSettings.maxRecordSize(configuration);
        source = ByteSource.open(file, configuration);
        boolean isOpen = false;
        try {
            if (source.canSeek() || begin == 0) {
                long[] limits = {begin, source.canSeek() ? end : 0, maxRecordSize};
                handle = RecordNative.openReader(source, source.name(), mode, limits, this);
            }
            isOpen = true;
        } catch (TfosException error) {
            throw new IOException(error.getMessage(), error);
        } finally {
            if (!isOpen) {
                source.close();
            }
        }
    }

    /**
     * Goes to the next record. False when there is none.
     *
     * @throws IOException damage, with file, offset and kind, where it is not to be skipped; what the file system says
     */
    public boolean next() throws IOException {
        if (batch != null && ++index < places[0]) {
            return true;
        }
        if (handle == 0) {
            return false;
        }
        index = 0;
        batch = null;
        try {
            batch = RecordNative.next(handle, places, this);
        } catch (TfosException error) {
            throw new IOException(error.getMessage(), error);
        }
        return batch != null;
    }

    /** Of the present record, in bytes. */
    public int size() {
        return places[2 + 2 * index];
    }

    /** Puts the bytes of the present record to the beginning of {@code target}, which has room for them. */
    public void copyTo(byte[] target) {
        batch.position(places[1 + 2 * index]);
        batch.get(target, 0, size());
    }

    /** How many bytes have been read from the file, or, in a range, the position in the file. */
    public long position() {
        return source.position();
    }

    /** Called by the native library. */
    private void noteDamage(long skipped, byte[] message) {
        damages++;
        if (damages <= MAX_WARNINGS) {
            LOGGER.warn("passed over {} bytes: {}", skipped, new String(message, StandardCharsets.UTF_8));
        }
        onDamage.accept(skipped);
    }

    @Override
    public void close() throws IOException {
        batch = null;
        if (handle != 0) {
            RecordNative.closeReader(handle);
            handle = 0;
            if (damages > MAX_WARNINGS) {
                LOGGER.warn("{}: damage was passed over at {} places in all", file, damages);
            }
        }
        source.close();
    }
}
