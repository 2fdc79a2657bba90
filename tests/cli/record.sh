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
for uri in hdfs://host:8020/a s3://bucket/a; do
    check 1 "no libjvm.so is in JAVA_HOME, /nowhere" env JAVA_HOME=/nowhere "$tfos" record count "$uri"
done
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
# Records that are something else say so, and what reads them (S84).
for command in cat schema head; do
    check 1 'the record is a SequenceExample, .*: read it with the record type SequenceExample' "$tfos" record $command "$golden/sequences.tfrecord"
done
check 0 '^words array<array<string>>$' "$tfos" record schema --type=SequenceExample "$golden/sequences.tfrecord"

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
# What is printed arrives, or the command has failed.
for command in cat head count check schema; do
    check 1 'cannot write to the standard output: No space left' sh -c "exec '$tfos' record $command '$whole' >/dev/full"
done
# What fails leaves nothing.
check 1 'the checksum of a record is wrong' "$tfos" record merge "$damaged" "$folder/not"
[ -z "$(ls "$folder" | grep '^not' || true)" ]
check 1 'offset 0: the checksum of a record.s size is wrong; perhaps it is no TFRecord file' "$tfos" record count "$0"

# An index is that of tfrecord2idx: offset and size of each frame.
first=$((size + 16))
check 0 '^5 records: .*whole.tfrecord.idx$' "$tfos" record index "$whole"
[ "$(head -n 1 "$whole.idx")" = "0 $first" ]
[ "$(wc -l <"$whole.idx")" = 5 ]
[ "$(tail -n 1 "$whole.idx" | awk '{ print $1 + $2 }')" = "$(wc -c <"$whole" | tr -d ' ')" ]
"$tfos" record index - <"$whole" 2>/dev/null | cmp - "$whole.idx"
check 0 '"index":".*whole.tfrecord.idx","records":5' "$tfos" record index --json "$whole"
check 1 'it is compressed, so no range of it can be read' "$tfos" record index "$folder/merged.gz"
check 1 'the checksum of a record is wrong' "$tfos" record index "$damaged"
[ ! -e "$folder/merged.gz.idx" ] && [ ! -e "$damaged.idx" ]

# Shuffled files have the same records, in the same order for the same seed, by whatever way.
lines() { "$tfos" record cat "$@" | sort; }
awk 'BEGIN { for (i = 0; i < 2000; i++) printf "{\"number\":%d,\"word\":\"w%d\"}\n", i, i * i }' >"$folder/rows.jsonl"
check 0 '2000 records written; 0 numbers rounded' "$tfos" record convert "$folder/rows.jsonl" "$folder/rows.tfrecord"
rows=$folder/rows.tfrecord
"$tfos" record cat "$rows" | cmp - "$folder/rows.jsonl"
"$tfos" record merge "$rows" "$folder/rows.gz" 2>/dev/null
for memory in 1000000 50000 3000; do # in memory, by an index, in buckets of buckets
    "$tfos" record shuffle --seed=7 --memory=$memory "$rows" "$folder/mixed-$memory" 2>/dev/null
    "$tfos" record shuffle --seed=7 --memory=$memory "$rows" - 2>/dev/null | cmp - "$folder/mixed-$memory"
    "$tfos" record shuffle --seed=8 --memory=$memory "$rows" - 2>/dev/null | cmp -s - "$folder/mixed-$memory" && exit 1
    [ "$(lines "$folder/mixed-$memory")" = "$(sort "$folder/rows.jsonl")" ]
done
mkdir "$folder/temporary"
cat "$rows" | TMPDIR=$folder/temporary "$tfos" record shuffle --memory=5000 - "$folder/rows.gz" "$whole" "$folder/both" 2>/dev/null
check 0 '^4005	' "$tfos" record count "$folder/both"
check 0 '4005 records written' "$tfos" record shuffle -n 3 "$rows" "$folder/rows.gz" "$whole" "$folder/three"
check 0 '^1335	.*three-00001-of-00003$' "$tfos" record count "$folder"/three-*
check 1 'the checksum of a record is wrong' "$tfos" record shuffle "$damaged" "$folder/not"
check 1 'the checksum of a record is wrong' "$tfos" record shuffle --memory=100 "$damaged" "$folder/not"
check 0 '4 records written' "$tfos" record shuffle --memory=10 --skip-damaged "$damaged" "$folder/salvaged"
check 2 '\-\-memory takes a number of bytes, not "much"' "$tfos" record shuffle --memory=much a b
# A signal leaves nothing, neither of what is written nor of what waits.
mkfifo "$folder/pipe"
TMPDIR=$folder/temporary "$tfos" record shuffle --memory=5000 "$folder/pipe" "$folder/not" 2>/dev/null &
shuffler=$!
exec 9>"$folder/pipe"
cat "$rows" >&9
kill -TERM "$shuffler"
wait "$shuffler" || true
exec 9>&-
[ -z "$(ls "$folder/temporary")$(ls "$folder" | grep '^not' || true)" ]
# Each of the 6 orders of 3 records comes about as often.
head -n 3 "$folder/rows.jsonl" | "$tfos" record convert --from=json - "$folder/few" 2>/dev/null
seed=0
while [ $seed -lt 120 ]; do
    "$tfos" record shuffle --seed=$seed "$folder/few" - 2>/dev/null | "$tfos" record cat - | tr '\n' ' '
    echo
    seed=$((seed + 1))
done | sort | uniq -c | awk '{ count++; if ($1 < 6 || $1 > 40) bad = 1 } END { exit bad || count != 6 }'

# Tables: CSV and lines of JSON, both ways.
printf 'id,name,ratio,empty\r\n1,"a ""quoted"", word",0.1,\r\n-2,,2.5e-3,\r\n3,"",,\r\n4,"two\nlines",nan,\r\n' >"$folder/table.csv"
check 0 '4 records written; 0 numbers rounded' "$tfos" record convert "$folder/table.csv" "$folder/table.tfrecord.gz"
check 0 '^ratio float$' "$tfos" record schema "$folder/table.tfrecord.gz"
printf 'id,name,ratio\n1,"a ""quoted"", word",0.1\n-2,,0.0025\n3,"",\n4,"two\nlines",nan\n' >"$folder/expected.csv"
"$tfos" record convert --to=csv "$folder/table.tfrecord.gz" - 2>/dev/null | cmp - "$folder/expected.csv"
cat "$folder/table.tfrecord.gz" | "$tfos" record convert --to=csv - "$folder/table2.csv.gz" 2>/dev/null
gzip -dc "$folder/table2.csv.gz" | cmp - "$folder/expected.csv"
check 0 '4 records written' "$tfos" record convert "$folder/table2.csv.gz" "$folder/table2.tfrecord"
[ "$(lines "$folder/table2.tfrecord")" = "$(lines "$folder/table.tfrecord.gz")" ]
for table in "$whole" "$folder/table2.tfrecord"; do
    "$tfos" record convert "$table" "$folder/there.jsonl" 2>/dev/null
    "$tfos" record convert "$folder/there.jsonl" "$folder/back.tfrecord" 2>/dev/null
    [ "$("$tfos" record cat "$folder/back.tfrecord")" = "$("$tfos" record cat "$table")" ]
    "$tfos" record convert "$table" "$folder/there.csv" 2>/dev/null
    "$tfos" record convert --schema="$("$tfos" record schema "$table")" "$folder/there.csv" "$folder/back.tfrecord" 2>/dev/null
    [ "$("$tfos" record cat "$folder/back.tfrecord")" = "$("$tfos" record cat "$table")" ]
done
sequences=$golden/sequences.tfrecord
"$tfos" record convert --type=sequence "$sequences" "$folder/there.jsonl" 2>/dev/null
"$tfos" record convert --type=sequence --schema="$("$tfos" record schema --type=sequence "$sequences")" "$folder/there.jsonl" "$folder/back" 2>/dev/null
[ "$("$tfos" record cat --type=sequence "$folder/back")" = "$("$tfos" record cat --type=sequence "$sequences")" ]

# What is wrong with a table is said with its place.
refuse() { # TEXT PATTERN [OPTION]...
    printf "$1" >"$folder/bad.$format"
    pattern=$2
    shift 2
    check 1 "$pattern" "$tfos" record convert "$@" "$folder/bad.$format" "$folder/not"
}
format=csv
refuse '' 'line 1, column 1: there is no line with the names of columns'
refuse 'a,b\n1,2\n3\n' 'line 3, column 1: the line has 1 cells, and there are 2 columns'
refuse 'a,b\n1,x"y\n' 'line 2, column 4: a quote within a cell that is not quoted'
refuse 'a,b\n1,"x\n\n' 'line 2, column 3: the quote is not closed'
refuse 'a,b\n1,"x"y\n' 'line 2, column 6: a comma or the end of the line was expected'
refuse 'a,\377\n1,2\n' 'line 1, column 3: this is no name of a column'
refuse ',a\n0,1\n' 'line 1, column 1: the column has no name .*index=False'
refuse 'a,b,\n0,1,\n' 'line 1, column 5: the column has no name'
refuse 'a\r1\r2\r' 'line 1, column 2: a carriage return that no line feed follows'
refuse 'a,b\n1,x\ry\n' 'line 2, column 4: a carriage return that no line feed follows'
refuse 'a,a\n1,2\n' 'line 1, column 3: there are two columns a'
refuse 'a,b\n1,3.14159265358979\n' 'line 2, column 3: "3.14159265358979" in column b: a float, which is what records hold, cannot hold it' --exact
refuse 'a,b\n1,x\n' 'line 2, column 3: "x" in column b: it is no whole number' --schema='a bigint, b bigint'
refuse 'a\n1\n' 'there is no column b' --schema='a bigint, b bigint'
refuse 'a\n1\n' '\-\-schema has no column a' --schema='b bigint'
refuse 'a\n\377\n' 'in column a: it is no UTF-8'
format=jsonl
refuse '{"a":1}\n\n{"a":\n' "line 3, column 5: unexpected token"
refuse '{"a":1,"b":{"c":1}}\n' 'line 1, column 8: "b": it is an object, which records cannot hold'
refuse '{"a":1}\n{"a":"x"}\n' 'line 2, column 2: "a": it is text here and a number elsewhere'
refuse '{"a":[1,null]}\n' '"a": it is null within a list'
refuse '{"a":1}\n{"b":1}\n' 'line 2, column 2: "b": --schema has no such column' --schema='a bigint'
refuse '{"a":16777217,"b":1.5}\n' '"a": a float' --schema='a float, b float' --exact
refuse '{"a":9007199254740993,"b":1.5}\n' '"a": a float' --schema='a float, b float' --exact
[ -z "$(ls "$folder" | grep '^not' || true)" ]
printf 'b\n3.14159265358979\n' >"$folder/bad.csv"
# What a float cannot hold is rounded and told by column, unless that is refused (S94).
check 0 '^1 records written; 1 numbers rounded \(column b: 1\); --exact refuses them$' "$tfos" record convert "$folder/bad.csv" "$folder/rounded"
check 0 '^1 records written; 1 numbers rounded$' "$tfos" record convert --allow-rounding "$folder/bad.csv" "$folder/rounded"
check 2 'do not go together' "$tfos" record convert --allow-rounding --exact "$folder/bad.csv" "$folder/rounded"
printf '{"a":1e300,"b":0.1}\n{"a":2,"b":9007199254740993}\n' >"$folder/bad.jsonl"
check 0 '^2 records written; 2 numbers rounded \(column a: 1, b: 1; 1 became infinite\); --exact refuses them$' "$tfos" record convert "$folder/bad.jsonl" "$folder/rounded"
check 0 '^\{"a":"?inf"?,"b":0.1' "$tfos" record cat "$folder/rounded"
printf 'x,y\r\n-0,-0\r\n1,0.5\r\n"a\rb",nan\r\n' | "$tfos" record convert --from=csv - "$folder/zeros" 2>/dev/null
check 0 '"x":"-0","y":-0.0' "$tfos" record cat "$folder/zeros"
printf '7,x\n' | "$tfos" record convert --from=csv --no-header --schema='n bigint, `a b` string' - "$folder/named" 2>/dev/null
check 0 '^\{"n":7,"a b":"x"\}$' "$tfos" record cat "$folder/named"
check 2 'bad.orc is none of its formats: tfrecord, csv, json, parquet, arrow' "$tfos" record convert "$folder/bad.orc" "$folder/not"
check 2 'one of .* is to be a TFRecord file, and the other none' "$tfos" record convert "$whole" "$folder/not"
check 2 '\-\-to takes tfrecord, csv, json, parquet or arrow, not "xml"' "$tfos" record convert --to=xml "$whole" "$folder/not"
check 2 '\-\-schema: character 3: a type is bigint, float, string or binary' "$tfos" record convert --schema='a int' "$folder/bad.csv" "$folder/not"
# What is for Python is judged before it begins.
check 2 'bad.arrow.gz: Parquet and Arrow files are compressed within' "$tfos" record convert "$folder/bad.arrow.gz" "$folder/not"
check 2 'Parquet needs a file' "$tfos" record convert --from=parquet - "$folder/not"
check 2 '\-\-skip-damaged is for TFRecord files that are read' "$tfos" record convert --skip-damaged "$folder/bad.parquet" "$folder/not"
check 2 '\-\-compress is for TFRecord files that are written' "$tfos" record convert --compress=gzip "$whole" "$folder/not.feather"
check 2 '\-\-schema: character 3: a type is' "$tfos" record convert --schema='a int' "$whole" "$folder/not.parquet"
check 2 '\-\-schema: the name of column 1 is no UTF-8' "$tfos" record convert --schema="$(printf '\377') bigint" "$whole" "$folder/not.parquet"
check 1 'Python with the packages tfos and pyarrow, and python3 cannot be run' env PATH=/nowhere "$tfos" record convert "$whole" "$folder/not.parquet"
