// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;

/**
 * A file that a task leaves on its own machine's disk, which Spark's committer, working on the driver's, does not see. It is hidden until the
 * task has succeeded.
 */
final class LocalFile implements TaskCompletionListener, TaskFailureListener {
    private final Path hidden;
    private final Path last; // where it is in the end
    private final FileSystem system;
    private boolean hasFailed;

    /** @param path where the committer would have the task write: OUTPUT/_temporary/0/_temporary/attempt_.../PARTITION/FILE */
    LocalFile(String path, TaskAttemptContext context) throws IOException {
        Configuration configuration = context.getConfiguration();
        last = placeOf(new Path(path));
        hidden = new Path(last.getParent(), "." + last.getName() + "." + context.getTaskAttemptID());
        system = last.getFileSystem(configuration);
        TaskContext task = TaskContext.get();
        task.addTaskFailureListener(this);
        task.addTaskCompletionListener(this);
    }

    private static Path placeOf(Path path) {
        String relative = path.getName();
        for (Path folder = path.getParent(); folder != null; folder = folder.getParent()) {
            if (folder.getName().startsWith("attempt_")) {
                return new Path(folder.getParent().getParent().getParent().getParent(), relative);
            }
            relative = folder.getName() + "/" + relative;
        }
        throw new IllegalArgumentException("tfrecord: writeLocality=local goes with Hadoop's own committer only, which would not write to " + path
                + "; nor with dynamic overwriting of partitions");
    }

    /** Where to write. */
    Path path() {
        return hidden;
    }

    @Override
    public void onTaskFailure(TaskContext context, Throwable error) {
        hasFailed = true;
    }

    @Override
    public void onTaskCompletion(TaskContext context) {
        try {
            if (hasFailed) {
                system.delete(hidden, false);
            } else if (!system.rename(hidden, last)) {
                throw new IOException("tfrecord: " + hidden + " cannot become " + last);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
