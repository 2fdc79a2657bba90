// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.TaskCompletionListener;

/** What a Spark task of an inference runs: rows of one partition go to a node, and each comes back as its result. */
final class PartitionInference implements FlatMapFunction<Iterator<InternalRow>, InternalRow> {
    private static final long serialVersionUID = 1L;

    private final byte[] options;
    private final ResultColumns columns;

    PartitionInference(byte[] options, ResultColumns columns) {
        this.options = options;
        this.columns = columns;
    }

    @Override
    public Iterator<InternalRow> call(Iterator<InternalRow> rows) {
        if (!rows.hasNext()) {
            return Collections.emptyIterator();
        }
        TaskContext context = TaskContext.get();
        ResultIterator results = new ResultIterator(new RowSource(rows, columns), new Feeder(options, context), columns.resultCount, context);
        context.addTaskCompletionListener((TaskCompletionListener) ended -> results.close());
        return results;
    }
}
