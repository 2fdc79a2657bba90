// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.Serializable;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import scala.Tuple2;
import scala.collection.Iterator;

/** The options of the data source; docs/spark_source.md lists them. Names are in any case. */
final class RecordOptions implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final int INFER_FILES = 10;
    private static final long INFER_RECORDS = 1000;

    final RecordType type;
    final RecordCompression compression; // for writing
    final int mode; // a number of ExampleReaderNative
    final boolean ignoresMissing; // files, as for Spark's other sources
    final boolean ignoresCorrupt;
    final boolean isExact; // what would be rounded is refused
    final boolean isRoundingTold; // on the driver
    final boolean isSplittable;
    final boolean isLocal; // each executor writes to its own disk
    final boolean isSidecar; // the schema is beside the data, and goes with exact encodings
    final boolean usesSidecar; // if there is one
    final boolean inferAll;
    final int inferFiles;
    final long inferRecords; // of a file

    /** Without what only readers need. */
    RecordOptions(scala.collection.immutable.Map<String, String> options) {
        this(options, new Configuration(false));
    }

    /**
     * @param options as Spark gives them
     * @param configuration has the session's settings
     * @throws IllegalArgumentException names an option and what its value can be
     */
    RecordOptions(scala.collection.immutable.Map<String, String> options, Configuration configuration) {
        Map<String, String> values = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (Iterator<Tuple2<String, String>> entries = options.iterator(); entries.hasNext(); ) {
            Tuple2<String, String> entry = entries.next();
            values.put(entry._1(), entry._2());
        }
        type = RecordType.of(values.getOrDefault("recordType", "Example"));
        compression = compression(values);
        ignoresMissing = ignores(values, "ignoreMissingFiles", configuration);
        ignoresCorrupt = ignores(values, "ignoreCorruptFiles", configuration);
        // Spark leaves out the rest of a corrupt file without counting; a mode counts.
        values.putIfAbsent("mode", ignoresCorrupt ? "skipFile" : "strict");
        mode = mode(oneOf(values, "mode", "strict", "skipRecord", "skipFile"));
        String allowRounding = values.containsKey("allowRounding") ? oneOf(values, "allowRounding", "true", "false") : "";
        isExact = oneOf(values, "exact", "false", "true").equals("true") || allowRounding.equals("false");
        isRoundingTold = allowRounding.isEmpty();
        if (isExact && allowRounding.equals("true")) {
            throw new IllegalArgumentException("tfrecord: exact is true, but allowRounding is true: give one of them");
        }
        isSplittable = oneOf(values, "splitFiles", "true", "false").equals("true");
        isLocal = oneOf(values, "writeLocality", "distributed", "local").equals("local");
        String schemaMode = oneOf(values, "schemaMode", "auto", "sidecar", "infer");
        isSidecar = schemaMode.equals("sidecar");
        usesSidecar = !schemaMode.equals("infer");
        if (isSidecar && isLocal) {
            throw new IllegalArgumentException("tfrecord: schemaMode=sidecar does not go with writeLocality=local: there is no folder of all files");
        }
        inferAll = oneOf(values, "inferAll", "false", "true").equals("true");
        inferFiles = (int) atLeastOne(values, "inferFiles", INFER_FILES);
        inferRecords = atLeastOne(values, "inferRecords", INFER_RECORDS);
    }

    private static RecordCompression compression(Map<String, String> values) {
        RecordCompression codec = RecordCompression.of(values.getOrDefault("codec", ""));
        RecordCompression compression = RecordCompression.of(values.getOrDefault("compression", ""));
        if (values.containsKey("codec") && values.containsKey("compression") && codec != compression) {
            throw new IllegalArgumentException("tfrecord: codec is \"" + values.get("codec") + "\", but compression is \"" + values.get("compression")
                    + "\": give one of them");
        }
        return values.containsKey("codec") ? codec : compression;
    }

    private static boolean ignores(Map<String, String> values, String name, Configuration configuration) {
        return values.containsKey(name) ? Boolean.parseBoolean(values.get(name).trim()) : configuration.getBoolean("spark.sql.files." + name, false);
    }

    private static int mode(String text) {
        switch (text) {
            case "strict":
                return ExampleReaderNative.STRICT;
            case "skipRecord":
                return ExampleReaderNative.SKIP_RECORD;
            default:
                return ExampleReaderNative.SKIP_FILE;
        }
    }

    /** The value as it is listed; the first where none is given. */
    private static String oneOf(Map<String, String> values, String name, String... choices) {
        String text = values.getOrDefault(name, choices[0]);
        for (String choice : choices) {
            if (choice.equalsIgnoreCase(text)) {
                return choice;
            }
        }
        throw new IllegalArgumentException("tfrecord: " + name + " is \"" + text + "\", where it can be one of " + String.join(", ", choices));
    }

    private static long atLeastOne(Map<String, String> values, String name, long otherwise) {
        String text = values.getOrDefault(name, Long.toString(otherwise));
        try {
            long value = Long.parseLong(text.trim());
            if (value >= 1 && value <= Integer.MAX_VALUE) {
                return value;
            }
        } catch (NumberFormatException error) {
            // said below
        }
        throw new IllegalArgumentException("tfrecord: " + name + " is \"" + text + "\", where it can be a number from 1 to 2147483647");
    }
}
