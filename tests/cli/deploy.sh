#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `tfos deploy` asks of Python, with one that prints its arguments; and what is used wrongly.
set -eu
. "$(dirname "$0")/check.inc"

machine=$folder/machine
mkdir "$machine"
cat >"$machine/python3" <<'EOS'
#!/bin/sh
[ "$1" = -c ] || exit 9
shift 2
echo "$*"
EOS
chmod +x "$machine/python3"
run() {
    env -i PATH="$machine:/usr/bin:/bin" "$tfos" deploy "$@"
}

check 0 '^kubernetes/template\.yaml\.jinja$' run kubernetes
check 0 '^kubernetes/template\.yaml\.jinja worker_replicas=4 ps_replicas=2 image=a b$' run kubernetes --workers 4 --ps=2 'image=a b'
check 0 '^data_service/data_service\.yaml\.jinja image=x=y workers=3$' run data_service image=x=y --workers=3
check 0 '^kubeflow/spark_application\.yaml\.jinja executors=3$' run spark_application --workers 3
check 0 '^kubeflow/tfjob\.yaml\.jinja worker_replicas=0$' run kubeflow --workers 0
check 0 '^usage: tfos deploy KIND' run --help
check 0 '^  swarm  ' run help

check 2 'the kind is missing$' run
check 2 'nomad is no kind$' run nomad
check 2 '^  kubernetes  ' run nomad
check 2 'serving has no --ps$' run serving --ps 1
check 2 'data_service has no --ps$' run data_service --ps=1
check 2 '--image is no option; variables are given as NAME=VALUE' run kubernetes --image x
check 2 '--worker=1 is no option' run kubernetes --worker=1
check 2 'more is no NAME=VALUE$' run kubernetes more
for count in two -1 '' 1.5; do
    check 2 "--workers takes a whole number, not \"$count\"" run kubernetes --workers "$count"
done
check 2 '--ps takes a whole number, not ""' run kubernetes --ps
rm "$machine/python3"
check 1 'templates are for Python with the packages tfos and Jinja2, and python3 cannot be run: .*: install Python' \
    env -i PATH="$machine" "$tfos" deploy kubernetes
