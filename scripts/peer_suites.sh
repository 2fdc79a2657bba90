#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of linkedin/spark-tfrecord and of tensorflow/ecosystem (spark-tensorflow-connector and hadoop), unchanged,
# from folders with those projects' sources, against tfos.jar. Only their tests are compiled, nothing that these test.
# What else the tests need comes from Maven, into build/peer_suites.
# usage: peer_suites.sh [--old] FOLDER...    --old: on Spark 3.5 and Scala 2.12
# exit status: 1 when a test fails that is not among those that differ, or when one of these passes.
set -euo pipefail

# Tests that ask for what is different here on purpose: what they then say must contain, and why.
declare -A differs=(
    ["TensorFlowSuite: Spark TensorFlow module should Test append mode during export of Example records"]="no exception was thrown|it expects that appending is refused; here it is possible"
    ["TensorFlowSuite: Spark TensorFlow module should Test errorIfExists mode during export of Example records"]="AnalysisException was thrown|it expects IllegalStateException; here Spark refuses as it does for its own sources"
    ["InferSchemaSuite: Should have a nullType if there are no elements"]="ArrayType(FloatType,true) did not equal NullType|it expects void for an empty float_list; here that is an array of float"
)

# Files whose tests call what is not here, the originals' own classes, where tfos.jar has others, or Scala's, and these classes.
declare -A inner=(
    [TFRecordSerializerTest]=TFRecordSerializer
    [TFRecordDeserializerTest]=TFRecordDeserializer
    [FeatureEncoderTest]=*FeatureEncoder
    [FeatureDecoderTest]=*FeatureDecoder
    [FeatureListEncoderTest]=*FeatureListEncoder
    [FeatureListDecoderTest]=*FeatureListDecoder
    [TfRecordRowEncoderTest]=DefaultTfRecordRowEncoder
    [TfRecordRowDecoderTest]=DefaultTfRecordRowDecoder
)

. "$(dirname "$0")/suite_options.sh"
[ "$environment" = old ] || inner[DataFrameTfrConverterTest]="Array.deep of Scala 2.12"
folders=()
for folder; do folders+=("$(realpath -e "$folder")"); done
cd "$(dirname "$0")/.."
scripts/system.sh java
command -v mvn >/dev/null || scripts/system.sh maven
scripts/environment.sh "$environment"
[ -z "${JAVA_HOME:-}" ] || PATH=$JAVA_HOME/bin:$PATH

tfos=$("$venv/bin/python" -c 'from tensorflowonspark import jar; print(jar.path())')
SPARK_HOME=$("$venv/bin/python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
export SPARK_HOME
build=$PWD/build/peer_suites/$environment
jars=$build/jars
declare -A counts=([passed]=0 [failed]=0 [differs]=0 ["not run"]=0)

spark_has() { # NAME: the version of this jar among Spark's
    basename "$SPARK_HOME/jars/$1"-[0-9]*.jar .jar | sed 's/.*-//'
}

fetch_jars() {
    local scala hadoop state
    scala=$(spark_has scala-library | cut -d . -f 1,2)
    hadoop=$(spark_has hadoop-client-api)
    state="$scala $hadoop $(sha256sum <scripts/peer_suites/pom.xml)"
    [ "$(cat "$jars/.state" 2>/dev/null)" != "$state" ] || return 0
    rm -rf "$jars"
    mvn -q -B -Dstyle.color=never -f scripts/peer_suites/pom.xml -Dmaven.repo.local="$PWD/build/peer_suites/maven" \
        -Dscala="$scala" -Dhadoop="$hadoop" dependency:copy-dependencies \
        -DexcludeTransitive=true -DoutputDirectory="$jars"
    echo "$state" >"$jars/.state"
}

count() { # OUTCOME TEXT
    counts[$1]=$((counts[$1] + 1))
    printf '%-8s %s\n' "$1" "$2"
}

# What is in a folder's src/test: suites by their classes' names, and the files to compile.
look_at_tests() { # FOLDER
    local file stem
    scala_files=() java_files=() suites=() inner_files=()
    while read -r file; do
        stem=$(basename "${file%.*}")
        if [ -n "${inner[$stem]:-}" ]; then
            inner_files+=("$file")
            continue
        fi
        case "$file" in
        *.scala) scala_files+=("$file") ;;
        *.java) java_files+=("$file") ;;
        esac
        case "$stem" in
        SharedSparkSessionSuite) ;;
        *Suite | *Test) suites+=("$(sed -nE 's/^package ([a-z.]+);?[[:space:]]*$/\1/p' "$file").$stem") ;;
        esac
    done < <(find "$1/src/test" -name '*.scala' -o -name '*.java' | sort)
}

compile_tests() { # INTO
    local classpath=$tfos:$jars/*:$SPARK_HOME/jars/*
    mkdir "$1"
    java -cp "$SPARK_HOME/jars/*" scala.tools.nsc.Main -nowarn -cp "$classpath" -d "$1" \
        scripts/peer_suites/PeerSuites.scala "${scala_files[@]}"
    [ ${#java_files[@]} -eq 0 ] || javac -nowarn -Xlint:none -cp "$classpath" -d "$1" "${java_files[@]}"
}

run_suites() { # FOLDER: where they find src, and leave their files
    local extra
    extra=$(printf ',%s' "$jars"/*.jar)
    mkdir "$1/tmp"
    jar --create --file "$1/tests.jar" -C "$1/classes" .
    (cd "$1" && "$SPARK_HOME/bin/spark-submit" --master 'local[2]' --class org.tfos.peers.PeerSuites --jars "$tfos$extra" \
        --driver-java-options "-Djava.io.tmpdir=$1/tmp" tests.jar "$tfos" results "${suites[@]}" 2>log) || {
        tail -n 40 "$1/log" >&2
        return 1
    }
}

# Each outcome that the run has written, beside the one that is expected.
judge() { # RESULTS
    local outcome suite name reason known
    for suite in "${suites[@]}"; do
        grep -q "$(printf '\t%s\t' "${suite##*.}")" "$1" || count failed "$suite: none of its tests ran"
    done
    while IFS=$'\t' read -r outcome suite name reason; do
        known=${differs["$suite: $name"]:-}
        if [ "$outcome" = passed ] && [ -n "$known" ]; then
            count failed "$suite: $name: it is listed as one that differs, and passes"
        elif [ "$outcome" = failed ] && [ -n "$known" ] && [[ $reason == *"${known%%|*}"* ]]; then
            count differs "$suite: $name: ${known#*|}"
        else
            count "$outcome" "$suite: $name${reason:+: $reason}"
        fi
    done <"$1"
}

list_not_run() { # FILE
    local suite name
    suite=$(basename "$1" .scala)
    while read -r name; do
        count "not run" "$suite: $name: calls ${inner[$suite]}, which is not here"
    done < <(sed -nE 's/^ *"(.*)" in \{.*/\1/p' "$1")
}

run_peer() { # NAME FOLDER
    local work=$build/$1 file
    echo "=== $1: $2"
    rm -rf "$work"
    mkdir -p "$work"
    ln -s "$2/src" "$work/src"
    look_at_tests "$2"
    compile_tests "$work/classes"
    run_suites "$work"
    judge "$work/results"
    for file in "${inner_files[@]}"; do list_not_run "$file"; done
    echo "what they printed: $work/log"
}

fetch_jars
for folder in "${folders[@]}"; do
    if [ -d "$folder/src/test/scala/com/linkedin/spark" ]; then
        run_peer spark-tfrecord "$folder"
    elif [ -d "$folder/spark/spark-tensorflow-connector" ]; then
        run_peer spark-tensorflow-connector "$folder/spark/spark-tensorflow-connector"
        run_peer tensorflow-hadoop "$folder/hadoop"
    else
        echo "$folder: the sources of neither spark-tfrecord nor ecosystem" >&2
        exit 2
    fi
done
echo "${counts[passed]} passed, ${counts[failed]} failed, ${counts[differs]} differ on purpose, ${counts["not run"]} not run"
[ "${counts[failed]}" -eq 0 ]
