#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tfos fs on files of this machine. python/tests/test_file_systems.py has the same on an HDFS.
set -eu
. "$(dirname "$0")/check.inc"

# quiet STATUS COMMAND...: as check, for a command that prints nothing.
quiet() {
    expected=$1 status=0
    shift
    "$@" >"$folder/output" 2>&1 || status=$?
    if [ "$status" != "$expected" ] || [ -s "$folder/output" ]; then
        echo "$*: expected exit status $expected and silence, got exit status $status and:"
        cat "$folder/output"
        exit 1
    fi
}

mkdir "$folder/here"
cd "$folder/here"
check 2 'a command is missing' "$tfos" fs
check 2 'there is no command "nothing"' "$tfos" fs nothing
check 2 'there is no option -x' "$tfos" fs ls -x
check 2 'cat: a path is missing' "$tfos" fs cat
check 2 'test: there are too many paths' "$tfos" fs test -e a b
check 0 'usage: tfos fs COMMAND' "$tfos" fs --help
check 1 'no libjvm.so is in JAVA_HOME, /nowhere' env JAVA_HOME=/nowhere "$tfos" fs ls hdfs://host:1/

quiet 0 "$tfos" fs mkdir -p a/b/c
check 1 'a/b: it exists already' "$tfos" fs mkdir a/b
check 1 'none/: there is no such folder; -p makes it' "$tfos" fs mkdir none/x
quiet 0 "$tfos" fs mkdir a/b/d/
printf 'one\n' | "$tfos" fs put - a/one
printf '' | "$tfos" fs put - a/empty
check 0 '^one$' "$tfos" fs cat a/one
check 0 '^one$' "$tfos" fs -cat 'a/o*' a/empty
check 0 '^Found 3 items$' "$tfos" fs ls a
check 0 '^-rw.* 4 20[0-9-]* [0-9:]* a/one$' "$tfos" fs ls 'a/{one,two}'
check 0 '^drwx.* a$' "$tfos" fs ls -d a
check 0 ' a/b/c$' "$tfos" fs ls -R a
check 1 'there is nothing at a/none' "$tfos" fs ls a/none
check 0 '^a/one: regular file, 4 bytes, modified ' "$tfos" fs stat a/one

for asked in '-e a' '-d a' '-f a/one' '-s a/one' '-z a/empty'; do quiet 0 "$tfos" fs test $asked; done
for asked in '-e none' '-d a/one' '-f a' '-s a/empty' '-z a/one'; do quiet 1 "$tfos" fs test $asked; done

head -c 3000 /dev/zero | tr '\0' x >long
[ "$("$tfos" fs head long | wc -c)" = 1024 ]
quiet 0 "$tfos" fs put long a/b
check 1 'a/b/long: it exists already; -f replaces it' "$tfos" fs put long a/b
quiet 0 "$tfos" fs put -f long a/one a/b
check 0 '^3004 +a/b$' "$tfos" fs du -s a/b
check 0 '^2.9 K +a/b/long$' "$tfos" fs du -h a/b
quiet 0 "$tfos" fs get a copy
check 0 '^one$' "$tfos" fs cat copy/b/one
check 1 'a/b/a: it is, or is in, what is to be copied' "$tfos" fs put a a/b
check 1 'long: several files are copied into a folder, which this is not' "$tfos" fs put -f a/one a/empty long

quiet 0 "$tfos" fs mv a/one moved
check 1 'moved: it exists already' "$tfos" fs mv long moved
quiet 0 "$tfos" fs mv moved long a
quiet 0 "$tfos" fs test -f a/moved
check 1 'a: it is a folder; -r deletes it' "$tfos" fs rm a
check 1 'there is nothing at none' "$tfos" fs rm none
quiet 0 "$tfos" fs rm -f none
check 0 '^Deleted a/moved$' "$tfos" fs rm 'a/m*'
check 0 '^Deleted a$' "$tfos" fs rm -r a
quiet 1 "$tfos" fs test -e a
