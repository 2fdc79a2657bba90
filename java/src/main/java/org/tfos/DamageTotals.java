// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the reads of a Spark application have skipped: for each file the places, and the bytes, but those of the rest of a file that was left. */
public final class DamageTotals {
    private static final Logger LOG = LoggerFactory.getLogger(DamageTotals.class);
    private static final int FILES_TOLD = 10; // of a job
    private static final NamedTotals.Kind KIND = new NamedTotals.Kind(DamageTotals::warn);

    private DamageTotals() {}

    /** The application's, on its driver. From the first call on, jobs that passed something over end with a warning in the driver's log. */
    public static NamedTotals of(SparkContext context) {
        return KIND.of(context);
    }

    private static void warn(NamedTotals added) {
        long[] total = added.total();
        int count = added.sums().size();
        String names = String.join(", ", added.sums().keySet().stream().limit(FILES_TOLD).toArray(String[]::new));
        LOG.warn("tfrecord: passed over damage: {} places, {} bytes, in {} files: {}{}", total[0], total[1], count, names,
                count > FILES_TOLD ? ", ..." : "");
    }
}
