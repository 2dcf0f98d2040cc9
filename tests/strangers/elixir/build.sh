#!/bin/sh
# Compiles lib/*.ex to ebin/.
set -e
cd "$(dirname "$0")"
export LC_ALL=C.UTF-8
mkdir -p ebin
rm -f ebin/*.beam
elixirc -o ebin lib/*.ex
