// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.io;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.tfos.RawRecordReader;

/** What readers of both of Hadoop's interfaces do with a split. */
final class TFRecordSplits {
    /** The group of the counters, and these: places with damage that was skipped, and their bytes. */
    static final String COUNTERS = "TFRecord";

    private static final String DAMAGES = "damages";
    private static final String SKIPPED_BYTES = "skipped bytes";

    private TFRecordSplits() {}

    interface Counter {
        void add(String name, long amount);
    }

    static RawRecordReader open(Path file, long start, long length, Configuration configuration, Counter counter) throws IOException {
        return new RawRecordReader(file, start, start + length, configuration, skipped -> {
            counter.add(DAMAGES, 1);
            counter.add(SKIPPED_BYTES, skipped);
        });
    }

    static float progress(RawRecordReader reader, long start, long length) {
        if (length == 0) {
            return 1;
        }
        return Math.max(0, Math.min(1, (float) (reader.position() - start) / length));
    }
}
