#!/bin/sh
set -e
echo "$LINE" >> lines.txt
wc -l < lines.txt > /etc/lines
