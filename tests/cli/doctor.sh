#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The doctor on machines made of scripts: one that has everything, and ones that lack something.
set -eu
. "$(dirname "$0")/check.inc"

machine=$folder/machine
mkdir -p "$machine" "$folder/spark/jars" "$folder/spark/bin"
: >"$folder/spark/jars/hadoop-client-api-3.5.0.jar"
cat >"$machine/java" <<'EOF'
#!/bin/sh
echo 'openjdk version "17.0.15" 2025-04-15' >&2
EOF
answer() {
    cat >"$machine/python3" <<EOF
#!/bin/sh
echo "a start-up file says hello"
echo '{"python": "3.11.7", "executable": "/opt/py/bin/python3", "spark": $1, "spark_home": "$folder/spark",
       "tensorflow": $2, "keras": ${3:-null}, "tf_keras": ${4:-null}, "tensorboard": "tensorboard 2.20.0", "tfos": null}'
EOF
    chmod +x "$machine/java" "$machine/python3"
}
run() {
    env -i PATH="$machine:/usr/bin:/bin" "$@"
}

answer '"pyspark 4.3.0"' '"tensorflow-cpu 2.21.0"'
check 0 '^ok +java +openjdk version "17.0.15"' run "$tfos" doctor
check 0 '^ok +python +3\.11\.7' run "$tfos" doctor
check 0 '^ok +spark +pyspark 4\.3\.0' run "$tfos" doctor
check 0 '^ok +tensorflow +tensorflow-cpu 2\.21\.0' run "$tfos" doctor
check 0 '^ok +hadoop +client in Spark: hadoop-client-api-3\.5\.0\.jar' run "$tfos" doctor
check 0 '^note +keras +not installed' run "$tfos" doctor
check 0 'to get it: /opt/py/bin/python3 -m pip install keras' run "$tfos" doctor
check 0 '^(ok|note) +gpu' run "$tfos" doctor
check 0 '^ok +kernel +pidfd works, memfd works' run "$tfos" doctor
check 0 '^ok +loopback +a driver here can listen on 127\.0\.0\.1:' run "$tfos" doctor
check 0 '"ok": true' run "$tfos" doctor --json
ln -s /bin/true "$folder/spark/bin/spark-submit"
check 0 '^ok +spark +SPARK_HOME is' run SPARK_HOME="$folder/spark" "$tfos" doctor
check 0 'listen on 127\.0\.0\.9:' run TFOS_SERVER_HOST=127.0.0.9 "$tfos" doctor

# The Python of the environment that the command is in goes before that of PATH.
mkdir "$folder/environment"
cp "$tfos" "$folder/environment/tfos"
sed 's/3\.11\.7/3.12.1/' "$machine/python3" >"$folder/environment/python3"
chmod +x "$folder/environment/python3"
check 0 '^ok +python +3\.12\.1' run "$folder/environment/tfos" doctor
check 1 'PYSPARK_PYTHON: /nowhere/python does not run' run PYSPARK_PYTHON=/nowhere/python "$folder/environment/tfos" doctor

answer '"pyspark 4.3.0"' '"tensorflow 2.21.0"' '"keras 3.14.0"'
check 0 '^ok +keras +keras 3\.14\.0: fits on several workers by .*distribute; fit under tf.distribute takes tf_keras, which is not' run "$tfos" doctor
answer '"pyspark 4.3.0"' '"tensorflow 2.21.0"' '"keras 3.14.0"' '"tf-keras 2.21.0"'
check 0 '^ok +keras .*; tf-keras 2\.21\.0 fits under tf\.distribute$' run "$tfos" doctor
for old in 2.15.0 3.4.1; do
    answer '"pyspark 4.3.0"' '"tensorflow 2.15.0"' "\"keras $old\""
    check 0 "^note +keras +keras $old: .*takes Keras 3\.5 or later" run "$tfos" doctor
    check 0 "pip install 'keras>=3\.5'" run "$tfos" doctor
done

answer '"pyspark 4.3.0"' null
check 1 '^missing +tensorflow' run "$tfos" doctor
check 1 'to get it: /opt/py/bin/python3 -m pip install tensorflow' run "$tfos" doctor
check 1 '"ok": false' run "$tfos" doctor --json

answer null '"tensorflow 2.21.0"'
check 1 'to get it: /opt/py/bin/python3 -m pip install pyspark' run "$tfos" doctor
check 1 'SPARK_HOME is /nowhere, but it has no bin/spark-submit' run SPARK_HOME=/nowhere "$tfos" doctor

check 1 'JAVA_HOME is /nowhere, but /nowhere/bin/java does not run' run JAVA_HOME=/nowhere "$tfos" doctor
check 1 '^missing +python +PYSPARK_PYTHON: /nowhere/python does not run' \
    run PYSPARK_PYTHON=/nowhere/python "$tfos" doctor

# The managers: what is found, and what a job would lack; it is missing where Spark's settings choose the manager.
answer '"pyspark 4.3.0"' '"tensorflow 2.21.0"'
check 0 '^ok +standalone +deploy/standalone/start_spark\.sh starts a master .*; executors run the python3 of their PATH$' run "$tfos" doctor
check 0 '^note +yarn +this Spark has no spark-yarn; neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set' run "$tfos" doctor
check 0 '^note +kubernetes +this Spark has no spark-kubernetes; no ~/\.kube/config, and KUBECONFIG is not set' run "$tfos" doctor
: >"$folder/spark/jars/spark-yarn_2.13-4.3.0.jar"
: >"$folder/spark/jars/spark-kubernetes_2.13-4.3.0.jar"
mkdir -p "$folder/spark/conf" "$folder/spark/sbin" "$folder/hadoop" "$folder/home/.kube"
: >"$folder/spark/sbin/start-master.sh"
check 0 '^ok +standalone +.*/spark/sbin/start-master\.sh starts a master; executors run /opt/p$' run PYSPARK_PYTHON= SPARK_CONF_DIR="$folder/other" \
    SPARK_HOME="$folder/spark" sh -c "mkdir -p $folder/other; echo 'spark.pyspark.python /opt/p' >$folder/other/spark-defaults.conf; $tfos doctor"

check 0 'to get it: set HADOOP_CONF_DIR or YARN_CONF_DIR to' run "$tfos" doctor
check 0 '^note +yarn +HADOOP_CONF_DIR is .*/hadoop, which has no yarn-site\.xml; spark-yarn_2' run HADOOP_CONF_DIR="$folder/hadoop" "$tfos" doctor
echo '<configuration/>' >"$folder/hadoop/yarn-site.xml"
check 0 '^note +yarn +yarn-site\.xml in .*/hadoop names no resource manager' run YARN_CONF_DIR="$folder/hadoop" "$tfos" doctor
echo '<name>yarn.resourcemanager.hostname</name>' >"$folder/hadoop/yarn-site.xml"
check 0 '^ok +yarn +spark-yarn_2\.13-4\.3\.0\.jar; yarn-site\.xml in .*/hadoop; executors run' run HADOOP_CONF_DIR="$folder/hadoop" "$tfos" doctor
check 1 '^missing +yarn +neither' run MASTER=yarn "$tfos" doctor
echo '# HADOOP_CONF_DIR=x' >"$folder/spark/conf/spark-env.sh"
check 0 '^note +yarn' run "$tfos" doctor
echo 'export HADOOP_CONF_DIR=/etc/hadoop/conf' >>"$folder/spark/conf/spark-env.sh"
check 0 '^ok +yarn +.*spark-env\.sh sets the folder' run MASTER=yarn "$tfos" doctor

check 0 '^note +kubernetes +KUBECONFIG names no file' run KUBECONFIG=/nowhere:/neither "$tfos" doctor
: >"$folder/home/.kube/config"
check 0 '^ok +kubernetes +spark-kubernetes_2.*; .*/home/\.kube/config; give the image by --conf' run HOME="$folder/home" "$tfos" doctor
check 0 '^ok +kubernetes +.*/home/\.kube/config' run KUBECONFIG="/nowhere:$folder/home/.kube/config" "$tfos" doctor
printf 'spark.master=k8s://host:443\nspark.kubernetes.container.image  me/spark:v1 \n' >"$folder/spark/conf/spark-defaults.conf"
check 1 '^missing +kubernetes +no ~' run "$tfos" doctor
check 0 '^ok +kubernetes +.*; image me/spark:v1; ' run HOME="$folder/home" "$tfos" doctor

# A master that is chosen must answer; nothing listens at port 1.
echo 'spark.master spark://127.0.0.1:1,localhost:1' >"$folder/spark/conf/spark-defaults.conf"
check 1 '^missing +standalone +spark://127.0.0.1:1,localhost:1 \(set by spark-defaults.conf\) does not answer: Connection refused' run "$tfos" doctor
check 1 'to get it: start it by deploy/standalone/start_spark.sh' run "$tfos" doctor
