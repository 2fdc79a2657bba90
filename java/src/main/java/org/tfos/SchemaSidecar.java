// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The schema beside the data: a file in the folder of a DataFrame, hidden from other readers by its name, with the text of StructType.json(). What
 * floats would round is written exactly there, as the fields' metadata says.
 */
final class SchemaSidecar {
    private static final String NAME = "_tfos_schema.json";
    private static final String ENCODING = "tfos.encoding"; // as <tfos/example.h> has it

    private SchemaSidecar() {}

    // ---- encodings

    /** The schema with each double and decimal in its exact encoding. */
    static StructType exact(StructType schema) {
        return encoded(schema, true);
    }

    /** The schema without any word about encodings. */
    static StructType plain(StructType schema) {
        return encoded(schema, false);
    }

    private static StructType encoded(StructType schema, boolean isExact) {
        StructType encoded = new StructType();
        for (StructField field : schema.fields()) {
            DataType type = field.dataType();
            Metadata metadata = field.metadata();
            if (type instanceof StructType) {
                type = encoded((StructType) type, isExact);
            } else if (isExact && isRounded(type)) {
                metadata = new MetadataBuilder().withMetadata(metadata).putString(ENCODING, "exact").build();
            } else if (metadata.contains(ENCODING)) {
                metadata = new MetadataBuilder().withMetadata(metadata).remove(ENCODING).build();
            }
            encoded = encoded.add(field.name(), type, field.nullable(), metadata);
        }
        return encoded;
    }

    private static boolean isRounded(DataType type) {
        if (type instanceof ArrayType) {
            return isRounded(((ArrayType) type).elementType());
        }
        return type instanceof DoubleType || type instanceof DecimalType || RecordColumns.isVector(type);
    }

    // ---- files

    /** The schema beside the data in a folder; null when there is none. */
    private static StructType read(Path folder, Configuration configuration) throws IOException {
        Path path = new Path(folder, NAME);
        String text;
        try (FSDataInputStream stream = path.getFileSystem(configuration).open(path)) {
            text = new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        } catch (FileNotFoundException error) {
            return null;
        }
        try {
            return (StructType) DataType.fromJson(text);
        } catch (Exception error) { // Scala's do not say what they throw
            throw new IllegalArgumentException("tfrecord: " + path + " is not the schema of a DataFrame: " + error.getMessage(), error);
        }
    }

    /**
     * The schema that the folders of files have beside their data; null when none has.
     *
     * @throws IllegalArgumentException names two folders that do not agree
     */
    static StructType of(List<FileStatus> files, Configuration configuration) throws IOException {
        Map<Path, StructType> found = new HashMap<>();
        Path first = null;
        for (FileStatus file : files) {
            Path folder = rootOf(file.getPath());
            if (!found.containsKey(folder)) {
                found.put(folder, read(folder, configuration));
                first = first == null ? folder : first;
                if (!isSame(found.get(first), found.get(folder))) {
                    throw new IllegalArgumentException("tfrecord: the schemas beside the data in " + first + " and in " + folder
                            + " are not the same: read them one by one, or with schemaMode=infer");
                }
            }
        }
        return first == null ? null : found.get(first);
    }

    /** The folder of a file, above those that partitionBy makes. */
    private static Path rootOf(Path file) {
        Path folder = file.getParent();
        while (folder.getName().contains("=") && folder.getParent() != null) {
            folder = folder.getParent();
        }
        return folder;
    }

    private static boolean isSame(StructType schema, StructType other) {
        return schema == null || other == null ? schema == other : schema.asNullable().equals(other.asNullable());
    }

    /**
     * Before a task writes into the job's folder: puts the schema there, or makes sure that it is the one that is there. Any number of tasks may.
     *
     * @param schema as {@link #exact} gives it; null when files are to be written without one
     * @throws IllegalArgumentException what is in the folder is of another schema, or has none where this has one
     */
    static void prepare(TaskAttemptContext context, StructType schema) throws IOException {
        Configuration configuration = context.getConfiguration();
        Path folder = FileOutputFormat.getOutputPath(context);
        FileSystem system = folder.getFileSystem(configuration);
        Path place = new Path(folder, NAME);
        StructType present = read(folder, configuration);
        if (isSame(present, schema)) {
            return;
        }
        if (!hasData(system, folder)) {
            if (present != null) {
                system.delete(place, false); // of what was there once
            }
            if (schema == null) {
                return;
            }
            Path fresh = new Path(folder, NAME + "." + context.getTaskAttemptID());
            try (FSDataOutputStream stream = system.create(fresh, true)) {
                stream.write(schema.json().getBytes(StandardCharsets.UTF_8));
            } catch (IOException | FSError error) { // the latter from local disks
                system.delete(fresh, false);
                throw ByteSink.failure(place.toString(), error);
            }
            if (!system.rename(fresh, place)) {
                system.delete(fresh, false); // another task was faster
            }
        }
        present = read(folder, configuration);
        if (!isSame(present, schema)) {
            throw new IllegalArgumentException("tfrecord: " + folder + " has data " + disagreement(present, schema));
        }
    }

    private static String disagreement(StructType present, StructType schema) {
        if (present == null) {
            return "without a schema beside it: append without schemaMode=sidecar";
        }
        return schema == null ? "with a schema beside it: append with schemaMode=sidecar"
                : "with another schema beside it: " + present.simpleString();
    }

    private static boolean hasData(FileSystem system, Path folder) throws IOException {
        return system.exists(folder)
                && system.listStatus(folder, path -> !path.getName().startsWith("_") && !path.getName().startsWith(".")).length > 0;
    }
}
