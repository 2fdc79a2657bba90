// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.io.compress.DeflateCodec;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.io.compress.zlib.ZlibCompressor.CompressionLevel;
import org.apache.hadoop.util.ReflectionUtils;

/** What Hadoop's configuration says about TFRecord files. With Spark, keys have {@code spark.hadoop.} before them. */
public final class RecordSettings {
    /** What to do about damage: {@code error}, {@code skip_record} or {@code skip_file}. */
    public static final String ON_DAMAGE = "tfos.tfrecord.onDamage";

    /** Bytes; larger records count as damage. 1 GiB unless set. */
    public static final String MAX_RECORD_SIZE = "tfos.tfrecord.maxRecordSize";

    /** Whether a large plain file may be read by several tasks; true unless set. */
    public static final String SPLITTABLE = "tfos.tfrecord.splittable";

    /** Of Hadoop's own: the level of gzip and zlib. */
    private static final String LEVEL = "zlib.compress.level";

    private static final String SKIP_FILE = "skip_file";
    private static final List<String> MODES = Arrays.asList("error", "skip_record", SKIP_FILE); // in the order of tfos_record_mode
    private static final long MAX_ARRAY = Integer.MAX_VALUE - 8; // the largest byte[] of every JVM

    private RecordSettings() {}

    /** A tfos_record_mode. */
    static int mode(Configuration configuration) {
        String value = configuration.getTrimmed(ON_DAMAGE, MODES.get(0));
        int mode = MODES.indexOf(value);
        if (mode < 0) {
            throw new IllegalArgumentException(ON_DAMAGE + ": expected one of " + String.join(", ", MODES) + ", not \"" + value + "\"");
        }
        return mode;
    }

    static long maxRecordSize(Configuration configuration) {
        long size = configuration.getLong(MAX_RECORD_SIZE, 1L << 30);
        if (size < 1 || size > MAX_ARRAY) {
            throw new IllegalArgumentException(MAX_RECORD_SIZE + ": expected 1 to " + MAX_ARRAY + ", not " + size);
        }
        return size;
    }

    /** Whether a file may be read by several tasks, by its name. Where damage ends a file, one task must read all of it, as what is behind is skipped. */
    public static boolean isSplittable(Path file, Configuration configuration) {
        return configuration.getBoolean(SPLITTABLE, true) && mode(configuration) != MODES.indexOf(SKIP_FILE)
                && new CompressionCodecFactory(configuration).getCodec(file) == null;
    }

    /** The codec that a file's name asks for, where the native library cannot find out for itself; else null. */
    static CompressionCodec foreignCodec(Path file, Configuration configuration) {
        CompressionCodec codec = new CompressionCodecFactory(configuration).getCodec(file);
        return compression(codec) == null ? codec : null;
    }

    /**
     * Makes a codec of the class that a job has chosen.
     *
     * @throws IOException TensorFlow cannot read what it writes
     */
    public static CompressionCodec codec(Class<? extends CompressionCodec> type, Configuration configuration) throws IOException {
        CompressionCodec codec = ReflectionUtils.newInstance(type, configuration);
        if (compression(codec) == null) {
            throw new IOException("TensorFlow reads no TFRecord files of " + type.getName() + "; it reads those of " + GzipCodec.class.getName()
                    + " and " + DefaultCodec.class.getName() + ", and files that are not compressed");
        }
        return codec;
    }

    /** What a codec, or none (null), writes; null for one that the native library does not know. */
    static RecordCompression compression(CompressionCodec codec) {
        if (codec == null) {
            return RecordCompression.NONE;
        }
        if (codec instanceof GzipCodec) {
            return RecordCompression.GZIP;
        }
        return codec.getClass() == DefaultCodec.class || codec instanceof DeflateCodec ? RecordCompression.ZLIB : null;
    }

    /** 1 to 9; 0 for the usual one. */
    static int level(Configuration configuration) {
        CompressionLevel level = configuration.getEnum(LEVEL, CompressionLevel.DEFAULT_COMPRESSION);
        // Its constants are those of zlib's levels, from 0 on, and then the default.
        return level == CompressionLevel.DEFAULT_COMPRESSION ? 0 : Math.max(level.ordinal(), 1);
    }
}
