// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.io;

import java.io.IOException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.mapred.FileOutputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordWriter;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hadoop.util.Progressable;
import org.tfos.RawRecordWriter;
import org.tfos.RecordSettings;

/** {@link TFRecordFileOutputFormat} for Hadoop's older interface. Values may be of any class; they are not written. */
public class TFRecordFileOutputFormatV1 extends FileOutputFormat<BytesWritable, Writable> {
    @Override
    public void checkOutputSpecs(FileSystem ignored, JobConf job) throws IOException {
        super.checkOutputSpecs(ignored, job);
        codec(job);
    }

    @Override
    public RecordWriter<BytesWritable, Writable> getRecordWriter(FileSystem ignored, JobConf job, String name, Progressable progress)
            throws IOException {
        CompressionCodec codec = codec(job);
        String extension = codec == null ? "" : codec.getDefaultExtension();
        return new Writer(new RawRecordWriter(getTaskOutputPath(job, name + extension), codec, job));
    }

    /** Null for none. */
    private static CompressionCodec codec(JobConf job) throws IOException {
        return getCompressOutput(job) ? RecordSettings.codec(getOutputCompressorClass(job, GzipCodec.class), job) : null;
    }

    private static final class Writer implements RecordWriter<BytesWritable, Writable> {
        private final RawRecordWriter writer;

        Writer(RawRecordWriter writer) {
            this.writer = writer;
        }

        @Override
        public void write(BytesWritable key, Writable value) throws IOException {
            writer.append(key.getBytes(), 0, key.getLength());
        }

        @Override
        public void close(Reporter reporter) throws IOException {
            writer.end();
        }
    }
}
