// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.io;

import java.io.IOException;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.RecordWriter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.tfos.RawRecordWriter;
import org.tfos.RecordSettings;

/** Writes TFRecord files, a record for each key; by gzip or zlib, as {@link FileOutputFormat}'s settings of compression say. */
public class TFRecordFileOutputFormat extends FileOutputFormat<BytesWritable, NullWritable> {
    @Override
    public void checkOutputSpecs(JobContext context) throws IOException {
        super.checkOutputSpecs(context);
        codec(context);
    }

    @Override
    public RecordWriter<BytesWritable, NullWritable> getRecordWriter(TaskAttemptContext context) throws IOException {
        CompressionCodec codec = codec(context);
        String extension = codec == null ? "" : codec.getDefaultExtension();
        return new Writer(new RawRecordWriter(getDefaultWorkFile(context, extension), codec, context.getConfiguration()));
    }

    /** Null for none. */
    private static CompressionCodec codec(JobContext context) throws IOException {
        if (!getCompressOutput(context)) {
            return null;
        }
        return RecordSettings.codec(getOutputCompressorClass(context, GzipCodec.class), context.getConfiguration());
    }

    private static final class Writer extends RecordWriter<BytesWritable, NullWritable> {
        private final RawRecordWriter writer;

        Writer(RawRecordWriter writer) {
            this.writer = writer;
        }

        @Override
        public void write(BytesWritable key, NullWritable value) throws IOException {
            writer.append(key.getBytes(), 0, key.getLength());
        }

        @Override
        public void close(TaskAttemptContext context) throws IOException {
            writer.end();
        }
    }
}
