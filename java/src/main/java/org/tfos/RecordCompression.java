// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.List;
import java.util.Locale;

/** What TensorFlow can read. The ordinals are the numbers of enum tfos_compression. */
enum RecordCompression {
    /** Reading only: by the file's first bytes. */
    AUTO(""),
    NONE("", "", "none", "uncompressed"),
    GZIP(".gz", "gzip", "gz", "org.apache.hadoop.io.compress.gzipcodec"),
    ZLIB(".deflate", "deflate", "zlib", "org.apache.hadoop.io.compress.defaultcodec", "org.apache.hadoop.io.compress.deflatecodec");

    private final String extension;
    private final List<String> names; // in lower case

    RecordCompression(String extension, String... names) {
        this.extension = extension;
        this.names = List.of(names);
    }

    /** By the name of a codec: short, or of Hadoop's class. */
    static RecordCompression of(String codec) {
        for (RecordCompression compression : values()) {
            if (compression.names.contains(codec.trim().toLowerCase(Locale.ROOT))) {
                return compression;
            }
        }
        throw new IllegalArgumentException("tfrecord: TensorFlow cannot read files written with the codec \"" + codec + "\"; those that it can read: "
                + "none, gzip (org.apache.hadoop.io.compress.GzipCodec), deflate or zlib (org.apache.hadoop.io.compress.DeflateCodec)");
    }

    /** Whether a file of this name is compressed, as far as names say: parts of it cannot be read then. */
    static boolean isNameOfCompressed(String file) {
        return file.endsWith(GZIP.extension) || file.endsWith(ZLIB.extension) || file.endsWith(".gzip") || file.endsWith(".zlib");
    }

    String extension() {
        return extension;
    }
}
