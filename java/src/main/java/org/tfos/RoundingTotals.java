// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the writes of a Spark application have rounded: for each column the numbers that became the nearest float, and those of them that became infinite. */
public final class RoundingTotals {
    private static final Logger LOG = LoggerFactory.getLogger(RoundingTotals.class);
    private static final int COLUMNS_TOLD = 10; // of a job
    private static final NamedTotals.Kind KIND = new NamedTotals.Kind(RoundingTotals::warn);

    private RoundingTotals() {}

    /** The application's, on its driver. From the first call on, jobs that rounded numbers end with a warning in the driver's log. */
    public static NamedTotals of(SparkContext context) {
        return KIND.of(context);
    }

    private static void warn(NamedTotals added) {
        long[] total = added.total();
        String columns = added.sums().entrySet().stream().limit(COLUMNS_TOLD).map(RoundingTotals::say).collect(Collectors.joining(", "));
        LOG.warn("tfrecord: {} numbers were rounded to float, which is what records hold{}: column {}{}. The option schemaMode=sidecar keeps them as they "
                + "are, with the schema beside the data; exact=true refuses them; allowRounding=true rounds them without this warning", total[0],
                total[1] == 0 ? "" : ", and " + total[1] + " of them, beyond its range, became infinite", columns,
                added.sums().size() > COLUMNS_TOLD ? ", ..." : "");
    }

    private static String say(Map.Entry<String, long[]> column) {
        return column.getKey() + " (" + column.getValue()[0] + ")";
    }
}
