// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.File;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.util.SerializableConfiguration;

/** Where a SavedModel is, and how executors load it. */
public final class ModelSource implements Serializable {
    private static final long serialVersionUID = 1L;
    /** What changes when another model is written there. */
    private static final String[] FILES = {"saved_model.pb", "saved_model.pbtxt", "variables/variables.index"};

    private final String place;
    private final String tags;
    private final int threads;
    private final String python;
    private final Broadcast<SerializableConfiguration> configuration; // null: the place is a path on each executor's machine

    /**
     * @param place a path, or a URI of one of Hadoop's file systems
     * @param tags of the graph, a JSON array
     * @param threads of an operation
     * @param python the executors' Python, which says where TensorFlow is
     * @throws IOException there is no such file system
     */
    public ModelSource(SQLContext sqlContext, String place, boolean isLocal, String tags, int threads, String python) throws IOException {
        this.place = place;
        this.tags = tags;
        this.threads = threads;
        this.python = python;
        if (isLocal) {
            configuration = null;
            return;
        }
        Configuration hadoop = sqlContext.sparkContext().hadoopConfiguration();
        new Path(place).getFileSystem(hadoop);
        configuration = JavaSparkContext.fromSparkContext(sqlContext.sparkContext()).broadcast(new SerializableConfiguration(hadoop));
    }

    /** The model as it is now, in words that differ from those of any other. */
    String state() throws IOException {
        StringBuilder state = new StringBuilder(place).append(' ').append(tags).append(' ').append(threads).append(' ').append(python);
        for (String name : FILES) {
            if (configuration == null) {
                File file = new File(place, name);
                state.append(' ').append(file.length()).append('@').append(file.exists() ? Files.getLastModifiedTime(file.toPath()) : "");
            } else {
                Path file = new Path(place, name);
                FileSystem system = file.getFileSystem(hadoop());
                FileStatus status = system.exists(file) ? system.getFileStatus(file) : new FileStatus();
                state.append(' ').append(status.getLen()).append('@').append(status.getModificationTime());
            }
        }
        return state.toString();
    }

    /** Loads it; what is not on this machine by way of a temporary folder, which is gone when this returns. */
    long load() throws IOException {
        NativeLibrary.load();
        String tensorflow = TensorFlowFolder.of(python);
        if (configuration == null) {
            return load(tensorflow, place);
        }
        File folder = Files.createTempDirectory("tfos-model-").toFile();
        try {
            Path source = new Path(place);
            File copy = new File(folder, "model");
            source.getFileSystem(hadoop()).copyToLocalFile(false, source, new Path(copy.toURI()), true);
            return load(tensorflow, copy.getPath());
        } finally {
            FileUtil.fullyDelete(folder);
        }
    }

    private long load(String tensorflow, String path) {
        return TransformNative.load(utf8(tensorflow), utf8(path), utf8(tags), threads);
    }

    private Configuration hadoop() {
        return configuration.value().value();
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
