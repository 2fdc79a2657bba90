// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.NoSuchElementException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.AbstractIterator;

/**
 * The batches of a file, or of a part of one. A batch lives until the next is asked for.
 *
 * <p>Spark's FileScanRDD closes it, at the file's end or the task's. A listener of its own to the task's end would come too early where another
 * thread, such as the one that feeds Python workers, still reads a batch.
 */
final class RecordBatches extends AbstractIterator<ColumnarBatch> implements Closeable {
    private static final Logger LOG = LoggerFactory.getLogger(RecordBatches.class);
    private static final long ROWS = 4096;
    private static final long SIZE = 1 << 20; // bytes: what was decoded is still in a cache when Spark reads it

    private final RecordFileReader reader;
    private final PartitionedFile file;
    private final StructType stored;
    private ByteSource source;
    private NativeSchema schema;
    private long handle; // 0: nothing is left to read
    private NativeBatch batch; // the last one that was given out, or the next
    private boolean isNext;

    RecordBatches(RecordFileReader reader, PartitionedFile file, Configuration configuration) throws IOException {
        this.reader = reader;
        this.file = file;
        stored = RecordColumns.stored(reader.required);
        Path path = file.toPath();
        try {
            schema = RecordColumns.arrow(stored);
            source = ByteSource.open(path, configuration);
            long end = file.start() + file.length();
            long[] limits = {file.start(), end >= file.fileSize() ? 0 : end, ROWS, SIZE};
            handle = ExampleReaderNative.open(
                    source, path.toString().getBytes(StandardCharsets.UTF_8), schema.address(), reader.options.type.ordinal(), reader.options.mode,
                    limits);
        } catch (IOException | RuntimeException error) {
            close();
            throw error;
        }
    }

    @Override
    public boolean hasNext() {
        if (!isNext && handle != 0) {
            isNext = load();
        }
        return isNext;
    }

    private boolean load() {
        closeBatch();
        batch = new NativeBatch();
        boolean isLoaded = read();
        tellDamage();
        if (!isLoaded) {
            close();
        }
        return isLoaded;
    }

    private boolean read() {
        try {
            return ExampleReaderNative.next(handle, batch.address());
        } catch (TfosException error) {
            // A range was asked for because of an option that only this class's callers know.
            throw error.getMessage().startsWith("UnsupportedError: record:")
                    ? new TfosException(error.getMessage() + ", with the option splitFiles=false")
                    : error;
        }
    }

    private void tellDamage() {
        byte[] damage = ExampleReaderNative.takeDamage(handle);
        if (damage != null) {
            LOG.warn("passed over: {}", new String(damage, StandardCharsets.UTF_8));
        }
    }

    @Override
    public ColumnarBatch next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        isNext = false;
        int rowCount = batch.rowCount();
        ColumnVector[] columns = batch.columns(stored, schema);
        StructField[] partition = reader.partition.fields();
        int count = columns.length;
        ColumnVector[] all = Arrays.copyOf(columns, count + partition.length);
        for (int i = 0; i < count; i++) {
            if (RecordColumns.isVector(reader.required.fields()[i].dataType())) {
                all[i] = new DenseVectorColumn(reader.required.fields()[i].dataType(), columns[i], rowCount);
            }
        }
        for (int i = 0; i < partition.length; i++) {
            ConstantColumnVector constant = new ConstantColumnVector(rowCount, partition[i].dataType());
            ColumnVectorUtils.populate(constant, file.partitionValues(), i);
            all[count + i] = constant;
        }
        return new ColumnarBatch(all, rowCount);
    }

    private void closeBatch() {
        if (batch != null) {
            batch.close();
            batch = null;
        }
    }

    @Override
    public void close() {
        isNext = false;
        closeBatch();
        if (handle != 0) {
            if (reader.damages != null) {
                reader.damages.add(ExampleReaderNative.damageCount(handle));
            }
            ExampleReaderNative.close(handle);
            handle = 0;
        }
        if (schema != null) {
            schema.close();
            schema = null;
        }
        if (source != null) {
            try {
                source.close();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            } finally {
                source = null;
            }
        }
    }
}
