// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.example;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.OutputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.tensorflow.hadoop.io.TFRecordFileInputFormat;
import org.tensorflow.hadoop.io.TFRecordFileOutputFormat;

/**
 * Two jobs of MapReduce: lines of text become TFRecord files, an Example with the features {@code offset} and {@code text} for each, and these
 * become text again. {@code hadoop jar tfos.jar org.tensorflow.hadoop.example.TFRecordFileMRExample [FOLDER]}, which has {@code input.txt}, and
 * gets {@code output.tfr} and {@code output.txt}.
 *
 * <p>The few bytes of protocol buffers around the two features are written here, so that no library of theirs is needed.
 */
public final class TFRecordFileMRExample {
    private static final int BYTES_LIST = 1; // fields of a Feature
    private static final int INT64_LIST = 3;
    private static final int LENGTH_DELIMITED = 2;

    private TFRecordFileMRExample() {}

    static final class ToTFRecordMapper extends Mapper<LongWritable, Text, BytesWritable, NullWritable> {
        @Override
        protected void map(LongWritable key, Text value, Context context) throws IOException, InterruptedException {
            byte[] offset = feature("offset", INT64_LIST, field(1, varint(key.get()))); // packed
            byte[] text = feature("text", BYTES_LIST, field(1, value.copyBytes()));
            context.write(new BytesWritable(field(1, join(offset, text))), NullWritable.get());
        }
    }

    static final class FromTFRecordMapper extends Mapper<BytesWritable, NullWritable, NullWritable, Text> {
        @Override
        protected void map(BytesWritable key, NullWritable value, Context context) throws IOException, InterruptedException {
            ByteBuffer features = find(ByteBuffer.wrap(key.getBytes(), 0, key.getLength()), 1);
            while (features.hasRemaining()) {
                ByteBuffer entry = find(features, 1);
                if (StandardCharsets.UTF_8.decode(find(entry.duplicate(), 1)).toString().equals("text")) {
                    ByteBuffer text = find(find(find(entry, 2), BYTES_LIST), 1);
                    byte[] bytes = new byte[text.remaining()];
                    text.get(bytes);
                    context.write(NullWritable.get(), new Text(bytes));
                }
            }
        }
    }

    /** An entry of the map of features. */
    private static byte[] feature(String name, int kind, byte[] list) {
        return field(1, join(field(1, name.getBytes(StandardCharsets.UTF_8)), field(2, field(kind, list))));
    }

    private static byte[] field(int number, byte[] content) {
        return join(varint(number << 3 | LENGTH_DELIMITED), varint(content.length), content);
    }

    private static byte[] varint(long value) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (; (value & ~0x7fL) != 0; value >>>= 7) {
            bytes.write((int) (value & 0x7f | 0x80));
        }
        bytes.write((int) value);
        return bytes.toByteArray();
    }

    private static byte[] join(byte[]... parts) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            bytes.write(part, 0, part.length);
        }
        return bytes.toByteArray();
    }

    /** The content of the next field of this number, behind which {@code message} is then; all fields are length-delimited. */
    private static ByteBuffer find(ByteBuffer message, int number) throws IOException {
        while (message.hasRemaining()) {
            long tag = takeVarint(message);
            int size = (int) takeVarint(message);
            ByteBuffer content = message.slice();
            content.limit(size);
            message.position(message.position() + size);
            if (tag == (number << 3 | LENGTH_DELIMITED)) {
                return content;
            }
        }
        throw new IOException("a record lacks the field " + number + ": is it one that this example has written?");
    }

    private static long takeVarint(ByteBuffer message) {
        long value = 0;
        for (int shift = 0; ; shift += 7) {
            byte next = message.get();
            value |= (long) (next & 0x7f) << shift;
            if (next >= 0) {
                return value;
            }
        }
    }

    /** Runs a job without reducers; {@code output} is replaced. Whether it has succeeded. */
    @SuppressWarnings("rawtypes")
    public static boolean convert(String jobName, Class<? extends Mapper> mapperClass, Class<? extends Writable> outputKeyClass,
            Class<? extends Writable> outputValueClass, Class<? extends InputFormat> inFormatClass, Class<? extends OutputFormat> outFormatClass,
            Path input, Path output) throws InterruptedException, IOException, ClassNotFoundException {
        Job job = Job.getInstance(new Configuration(), jobName);
        job.setJarByClass(mapperClass);
        job.setMapperClass(mapperClass);
        job.setNumReduceTasks(0);
        job.setInputFormatClass(inFormatClass);
        job.setOutputFormatClass(outFormatClass);
        job.setOutputKeyClass(outputKeyClass);
        job.setOutputValueClass(outputValueClass);
        output.getFileSystem(job.getConfiguration()).delete(output, true);
        FileInputFormat.addInputPath(job, input);
        FileOutputFormat.setOutputPath(job, output);
        return job.waitForCompletion(true);
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 1) {
            throw new IllegalArgumentException("usage: TFRecordFileMRExample [FOLDER]");
        }
        Path folder = new Path(args.length == 1 ? args[0] : "/tmp/tfrecord-file-test");
        Path records = new Path(folder, "output.tfr");
        boolean isDone = convert("ToTFR", ToTFRecordMapper.class, BytesWritable.class, NullWritable.class, TextInputFormat.class,
                TFRecordFileOutputFormat.class, new Path(folder, "input.txt"), records)
                && convert("FromTFR", FromTFRecordMapper.class, NullWritable.class, Text.class, TFRecordFileInputFormat.class,
                TextOutputFormat.class, records, new Path(folder, "output.txt"));
        if (!isDone) {
            throw new IOException("a job has failed; its log says why");
        }
    }
}
