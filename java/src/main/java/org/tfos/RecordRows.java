// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.Closeable;
import java.util.Collections;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.AbstractIterator;

/** The rows of batches, for plans that take none. A row lives until the next is asked for. */
final class RecordRows extends AbstractIterator<InternalRow> implements Closeable {
    private final RecordBatches batches;
    private final UnsafeProjection projection;
    private Iterator<InternalRow> rows = Collections.emptyIterator();

    RecordRows(RecordBatches batches, StructType required, StructType partition) {
        this.batches = batches;
        StructType all = required;
        for (StructField field : partition.fields()) {
            all = all.add(field);
        }
        projection = UnsafeProjection.create(all);
    }

    @Override
    public boolean hasNext() {
        while (!rows.hasNext() && batches.hasNext()) {
            rows = batches.next().rowIterator();
        }
        return rows.hasNext();
    }

    @Override
    public InternalRow next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return projection.apply(rows.next());
    }

    @Override
    public void close() {
        rows = Collections.emptyIterator();
        batches.close();
    }
}
