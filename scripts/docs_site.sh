#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The site of all versions, in build/site: a folder for each tag vVERSION, made by that version's own scripts/docs.sh, the folder
# "latest" of this tree, and versions.json, from which the pages list them. The site opens with the newest release.
set -euo pipefail
cd "$(dirname "$0")/.."
site=build/site
sources=$(mktemp -d)
trap 'rm -rf "$sources"' EXIT
rm -rf "$site"
mkdir -p "$site"
versions=()
for tag in $(git tag --list 'v[0-9]*' --sort=-version:refname); do
    mkdir "$sources/$tag"
    git archive "$tag" | tar -x -C "$sources/$tag"
    "$sources/$tag/scripts/docs.sh"
    mv "$sources/$tag/build/docs" "$site/${tag#v}"
    rm -rf "${sources:?}/$tag"
    versions+=("${tag#v}")
done
scripts/docs.sh
cp -r build/docs "$site/latest"
versions+=(latest)
printf '%s\n' "${versions[@]}" | python3 -c 'import json, sys; print(json.dumps(sys.stdin.read().split()))' >"$site/versions.json"
printf '<!DOCTYPE html>\n<meta http-equiv="refresh" content="0; url=%s/">\n<title>tfos</title>\n' "${versions[0]}" >"$site/index.html"
echo "$site/index.html"
