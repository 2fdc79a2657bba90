#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Help, manual page and completions: they have all commands and options, and shells and roff take them.
set -eu
# ctest starts this by sh; what bash completes, bash must be asked.
if [ -z "${BASH_VERSION:-}" ] || shopt -qo posix; then exec bash "$0" "$@"; fi
. "$(dirname "$0")/check.inc"

fail() {
    echo "$*"
    exit 1
}

# The help fits a screen, and its examples are commands of its own.
"$tfos" --help >"$folder/help"
[ "$(wc -l <"$folder/help")" -le 24 ] || fail 'the help has more than 24 lines'
[ -z "$(grep -E '.{80}' "$folder/help")" ] || fail 'the help has a line of 80 columns or more'
[ "$(grep -c '^  tfos [a-z]* ' "$folder/help")" -ge 5 ] || fail 'the help has no examples'
check 2 'completion needs the name of a shell' "$tfos" completion
check 2 'completion needs the name of a shell' "$tfos" completion fish
check 2 'manual takes no argument' "$tfos" manual 1

"$tfos" completion bash >"$folder/tfos.bash"
"$tfos" completion zsh >"$folder/_tfos"
"$tfos" manual >"$folder/tfos.1"
commands=$(sed -n '/^usage/,/^examples/s/^  \([a-z]*\) .*/\1/p' "$folder/help")
"$tfos" record --help >"$folder/record"
record_commands=$(sed -n '/^usage/,/^A FILE/s/^  \([a-z]*\) .*/\1/p' "$folder/record")
options=$(sed -n 's/^  .*--\([a-z-]*\).*/\1/p' "$folder/record")
[ "$(echo "$commands" | wc -l)" -ge 8 ] && [ "$(echo "$record_commands" | wc -l)" -ge 11 ] && [ "$(echo "$options" | wc -l)" -ge 14 ] ||
    fail "found too few in the help: $commands; $record_commands; $options"

complete_words() { # WORD...: what bash would offer for the last one, in COMPREPLY
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _tfos
}
expect() { # EXPECTED WORD...
    local expected=$1
    shift
    complete_words "$@"
    [ "${COMPREPLY[*]}" = "$expected" ] || fail "$*: completed as \"${COMPREPLY[*]}\", not \"$expected\""
}
. "$folder/tfos.bash"
compopt() { :; } # bash has it while it completes only
expect "$(echo $commands) --help --version" tfos ''
expect "$(echo $record_commands) --help" tfos record ''
complete_words tfos record cat --
[ "$(printf '%s\n' "${COMPREPLY[@]}" | sed 's/^--//; s/=$//' | sort)" = "$(printf '%s\nhelp\n' "$options" | sort)" ] ||
    fail "options completed as ${COMPREPLY[*]}"
expect 'doctor' tfos do
expect 'count check cat convert' tfos record c
expect '--skip-damaged' tfos record check --sk
expect '--type=' tfos record cat --ty
expect 'example sequence bytes' tfos record cat --type =
expect 'sequence' tfos record cat --type = s
expect 'gzip' tfos record merge a b --compress = g
expect '' tfos record cat part
expect '--watch' tfos status --w
expect 'bash zsh --help' tfos completion ''
expect '--json' tfos channels --j
expect 'swarm' tfos deploy sw
expect '--workers' tfos deploy --w
expect '' tfos frobnicate ''

for name in $commands; do
    grep -q "'$name:" "$folder/_tfos" || fail "zsh does not complete $name"
    grep -q "^.fB$name.fR" "$folder/tfos.1" || fail "the manual page lacks $name"
done
for name in $record_commands; do
    grep -q "'$name:" "$folder/_tfos" || fail "zsh does not complete record $name"
    grep -q "^.fBtfos record $name.fR" "$folder/tfos.1" || fail "the manual page lacks record $name"
done
for name in $options; do
    grep -q -e "'--$name=*\[" "$folder/_tfos" || fail "zsh does not complete --$name"
    sed 's/\\-/-/g' "$folder/tfos.1" | grep -q -e "--$name.fR" || fail "the manual page lacks --$name"
done

# What is on this machine judges the texts.
if command -v zsh >/dev/null; then zsh -n "$folder/_tfos"; fi
if command -v groff >/dev/null; then
    groff -man -Tutf8 -ww "$folder/tfos.1" >"$folder/page" 2>"$folder/warnings"
    [ ! -s "$folder/warnings" ] || fail "groff: $(cat "$folder/warnings")"
    grep -q 'tfos record shuffle' <(sed 's/.\x08//g' "$folder/page") || fail 'the page does not show tfos record shuffle'
fi
