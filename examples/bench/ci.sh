#!/bin/sh
# Runs a suite in CI and leaves its reports beside the results: ci.sh SUITE FOLDER.
# A pipeline that is started again with the same folder makes only what has no result.
set -u
suite=$1 folder=$2
clove=${CLOVE:-clove}
"$clove" bench run --resume --results "$folder" "$suite"
status=$?
for format in junit html csv markdown; do
    "$clove" bench report --format "$format" "$folder" > "$folder/report.$format" || status=1
done
mv "$folder/report.junit" "$folder/report.xml"
# GitHub shows this file on the page of the run.
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$folder/report.markdown" >> "$GITHUB_STEP_SUMMARY"
exit "$status"
