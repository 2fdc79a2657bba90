// SPDX-License-Identifier: Apache-2.0
// Compiled together with a peer's tests: the classes that these find under names of their project's or of Spark's tests, and the program
// that runs them.

package org.apache.spark {
  import org.apache.spark.sql.SparkSession

  /** As in Spark's tests, whose jar is not published for each version. */
  abstract class SharedSparkSession {
    @transient protected var spark: SparkSession = _

    def setUp(): Unit = spark = SparkSession.builder().master("local[2]").appName(getClass.getSimpleName).getOrCreate()

    def tearDown(): Unit = spark.stop()
  }
}

package com.linkedin.spark.datasources.tfrecord {
  object TensorFlowInferSchema extends org.tfos.peers.InferThroughSpark("tfrecord")
}

package org.tensorflow.spark.datasources.tfrecords {
  object TensorFlowInferSchema extends org.tfos.peers.InferThroughSpark("tfrecords")
}

package org.tfos.peers {
  import java.io.PrintWriter
  import java.nio.file.{Files, Path, Paths}

  import scala.reflect.runtime.universe.{TypeTag, typeOf}

  import com.google.protobuf.MessageLite
  import org.apache.hadoop.io.{BytesWritable, NullWritable}
  import org.apache.spark.rdd.RDD
  import org.apache.spark.sql.SparkSession
  import org.apache.spark.sql.execution.datasources.DataSource
  import org.apache.spark.sql.internal.SQLConf
  import org.apache.spark.sql.types.{BinaryType, StructField, StructType}
  import org.junit.runner.{Description, JUnitCore}
  import org.junit.runner.notification.{Failure, RunListener}
  import org.scalatest.events._
  import org.scalatest.{Args, Reporter, Suite}
  import org.tensorflow.hadoop.io.TFRecordFileOutputFormat

  /** Answers the peers' call for the schema of an RDD with that of a file of its records, as the data source infers it. */
  class InferThroughSpark(source: String) {
    def apply[T: TypeTag](records: RDD[T]): StructType = {
      val path = Files.createTempDirectory("peer-suites").resolve("records").toString
      records
        .map { case record: MessageLite => record.toByteArray case other => other.toString.getBytes }
        .map(bytes => (new BytesWritable(bytes), NullWritable.get))
        .saveAsNewAPIHadoopFile[TFRecordFileOutputFormat](path)
      val recordType = typeOf[T].typeSymbol.name.toString
      SparkSession.active.read.format(source).option("recordType", recordType).option("inferAll", "true").load(path).schema
    }

    def getSchemaForByteArray(): StructType = StructType(Seq(StructField("byteArray", BinaryType)))
  }

  /** Writes a line a test: its outcome, suite, name and, when it failed, the reason, with tabs between. */
  class Results(out: PrintWriter) extends RunListener with Reporter {
    private var failed = Set.empty[Description]

    override def apply(event: Event): Unit = event match {
      case test: TestSucceeded => write("passed", test.suiteName, test.testName, "")
      case test: TestFailed => write("failed", test.suiteName, test.testName, reason(test.message, test.throwable))
      case test: TestCanceled => write("failed", test.suiteName, test.testName, reason(test.message, test.throwable))
      case test: TestPending => write("not run", test.suiteName, test.testName, "not yet written")
      case test: TestIgnored => write("not run", test.suiteName, test.testName, "switched off there")
      case suite: SuiteAborted => write("failed", suite.suiteName, "(the suite)", reason(suite.message, suite.throwable))
      case _ =>
    }

    override def testIgnored(test: Description): Unit = write("not run", suiteOf(test), test.getMethodName, "switched off there")

    override def testFailure(failure: Failure): Unit = {
      val test = failure.getDescription
      failed += test
      val name = Option(test.getMethodName).getOrElse("(the suite)")
      write("failed", suiteOf(test), name, reason(failure.getMessage, Some(failure.getException)))
    }

    override def testFinished(test: Description): Unit = if (!failed(test)) write("passed", suiteOf(test), test.getMethodName, "")

    private def suiteOf(test: Description): String = test.getTestClass.getSimpleName

    /** The first line of what caused all, and of what the test says. */
    private def reason(message: String, error: Option[Throwable]): String = {
      error.foreach(_.printStackTrace())
      val causes = Iterator.iterate(error.orNull)(_.getCause).takeWhile(_ != null).drop(1).map(_.toString).toSeq
      (causes.lastOption ++ Option(message)).map(_.linesIterator.take(1).mkString).mkString("; ")
    }

    private def write(fields: String*): Unit = {
      out.println(fields.map(_.replace('\t', ' ').trim).mkString("\t"))
      out.flush()
    }
  }

  object PeerSuites {
    private val Sources =
      Seq("tfrecord", "tfrecords", "com.linkedin.spark.datasources.tfrecord", "org.tensorflow.spark.datasources.tfrecords")
    private val Classes = Seq("io.TFRecordFileInputFormat", "io.TFRecordFileOutputFormat", "util.TFRecordReader", "util.TFRecordWriter")
      .map("org.tensorflow.hadoop." + _)

    /** usage: JAR RESULTS SUITE... */
    def main(arguments: Array[String]): Unit = {
      val jar = Paths.get(arguments(0)).toRealPath()
      println(s"$jar answers:")
      Sources.foreach(name => mustBeOf(jar, name, DataSource.lookupDataSource(name, SQLConf.get)))
      Classes.foreach(name => mustBeOf(jar, name, Class.forName(name)))
      val out = new PrintWriter(arguments(1))
      val results = new Results(out)
      arguments.drop(2).map(Class.forName(_)).foreach { test =>
        if (classOf[Suite].isAssignableFrom(test)) {
          test.getDeclaredConstructor().newInstance().asInstanceOf[Suite].run(None, Args(results))
        } else {
          val junit = new JUnitCore()
          junit.addListener(results)
          junit.run(test)
        }
      }
      out.close()
    }

    private def mustBeOf(jar: Path, name: String, found: Class[_]): Unit = {
      val place = Paths.get(found.getProtectionDomain.getCodeSource.getLocation.toURI).toRealPath()
      require(place == jar, s"$name is answered by $place, not by $jar")
      println(s"    for $name by ${found.getName}")
    }
  }
}
