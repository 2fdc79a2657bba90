// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.TaskCompletionListener;

/** What a Spark task of a transform runs: rows of one partition go through a model. */
final class PartitionTransform implements FlatMapFunction<Iterator<InternalRow>, InternalRow> {
    private static final long serialVersionUID = 1L;

    private final ModelSource source;
    private final byte[] signature;
    private final ResultColumns columns;
    private final int batchSize;

    PartitionTransform(ModelSource source, byte[] signature, ResultColumns columns, int batchSize) {
        this.source = source;
        this.signature = signature;
        this.columns = columns;
        this.batchSize = batchSize;
    }

    /** The model is loaded where there is a row. */
    @Override
    public Iterator<InternalRow> call(Iterator<InternalRow> rows) throws IOException {
        if (!rows.hasNext()) {
            return Collections.emptyIterator();
        }
        TaskContext context = TaskContext.get();
        ModelCall model = new ModelCall(LoadedModel.acquire(source), signature);
        TransformIterator results = new TransformIterator(new RowSource(rows, columns), model, batchSize, columns.resultCount, context);
        context.addTaskCompletionListener((TaskCompletionListener) ended -> results.close());
        return results;
    }
}
