#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tfos record on small files, whole and damaged, by name and through pipes.
set -eu
. "$(dirname "$0")/check.inc"

whole=$folder/whole.tfrecord
check 2 'a command is missing' "$tfos" record
check 2 'there is no command "nothing"' "$tfos" record nothing
check 2 'count: a file is missing' "$tfos" record count
check 2 'more files than it takes, from "c" on' "$tfos" record repair a b c
check 2 '\-\-type takes example, sequence or bytes, not "row"' "$tfos" record cat --type=row a
check 2 '\-\-compress takes none, gzip or zlib, which TensorFlow can read, not "snappy"' "$tfos" record merge --compress=snappy a b
check 2 'number from 1 on, not "-1"' "$tfos" record head --number=-1 a
check 0 'Exit status: 0 done, 1 damaged or failed' "$tfos" record --help
check 1 'cannot open /nowhere: No such file' "$tfos" record count /nowhere

golden=$(dirname "$0")/../golden
cp "$golden/examples.tfrecord" "$whole"
check 0 '^5	' "$tfos" record count "$whole"
check 0 '"records":5,"bytes":[0-9]+,"damages":0' "$tfos" record count --json "$whole"
check 0 '^10	total$' "$tfos" record count "$whole" "$golden/examples.tfrecord.gz"
check 0 '5 records, 0 damages' "$tfos" record check "$whole"
check 0 '^number bigint$' "$tfos" record schema "$whole"
check 0 '^numbers array<bigint>$' "$tfos" record schema "$whole"
check 0 '^bytes binary$' "$tfos" record schema "$whole"
check 0 '"kind": ?"int64"' "$tfos" record schema --json "$whole"
check 0 '"number":0,' "$tfos" record head -n 1 "$whole"
check 0 '"bytes":\{"base64":"/wA="\}' "$tfos" record cat "$whole"
[ "$("$tfos" record cat "$whole" | wc -l)" = 5 ]
[ "$("$tfos" record cat -n 2 - <"$whole" | wc -l)" = 2 ]
check 0 '^\{"bytes":' "$tfos" record cat --type=bytes "$whole"
check 0 '^words array<array<string>>$' "$tfos" record schema --type=sequence "$golden/sequences.tfrecord"

# A file shared out and put together again has the same records, in turn.
"$tfos" record split -n 3 "$whole" "$folder/part" 2>/dev/null
check 0 '^2	.*part-00000-of-00003$' "$tfos" record count "$folder"/part-*
check 0 '^1	.*part-00002-of-00003$' "$tfos" record count "$folder"/part-*
"$tfos" record merge "$folder"/part-* "$folder/merged.gz" 2>/dev/null
check 0 'gzip compressed|1f8b' sh -c "head -c 2 '$folder/merged.gz' | od -An -tx1 | tr -d ' '"
check 0 '^5	' "$tfos" record count "$folder/merged.gz"
[ "$("$tfos" record cat "$whole" | sort)" = "$("$tfos" record cat "$folder/merged.gz" | sort)" ]
"$tfos" record merge "$whole" - 2>/dev/null | cmp - "$whole"

# Damage in the second record's bytes.
size=$(od -An -tu8 -N8 "$whole" | tr -d ' ')
damaged=$folder/damaged.tfrecord
cp "$whole" "$damaged"
printf '\377' | dd of="$damaged" bs=1 seek=$((size + 16 + 20)) conv=notrunc 2>/dev/null
check 1 "damaged.tfrecord: offset $((size + 16)): the checksum of a record is wrong" "$tfos" record check "$damaged"
check 1 '4 records, 1 damages' "$tfos" record check "$damaged"
check 1 "\"ok\":false,\"records\":4,\"damages\":\[\{\"file\":.*\"offset\":$((size + 16))," "$tfos" record check --json "$damaged"
check 1 'the checksum of a record is wrong' "$tfos" record count "$damaged"
check 0 '^4	' "$tfos" record count --skip-damaged "$damaged"
check 0 '4 records written; 1 damages' "$tfos" record repair "$damaged" "$folder/repaired"
check 0 '4 records, 0 damages' "$tfos" record check "$folder/repaired"
# What fails leaves nothing.
check 1 'the checksum of a record is wrong' "$tfos" record merge "$damaged" "$folder/not"
[ -z "$(ls "$folder" | grep '^not' || true)" ]
check 1 'offset 0: the checksum of a record.s size is wrong; perhaps it is no TFRecord file' "$tfos" record count "$0"
