#!/bin/sh
# The steps that turn a checkout into the files of the image. The Dockerfile's stages run them, and so does
# tests/test_packaging.py in a clean environment, so that there is one way and it is tested without Docker.
#
#   image_steps.sh packages                  install what the page's lock names
#   image_steps.sh page                      build the page: app/web -> app/web/dist
#   image_steps.sh dependencies DIRECTORY    make a virtual environment with what the lock names
#   image_steps.sh service DIRECTORY         build the wheel (page included) and install it there
set -eu
cd "$(dirname "$0")/.."

# PYTHON is the interpreter that makes the environment; the image's own by default.
: "${PYTHON:=python3}"

pip_into() {
  directory=$1
  shift
  "$PYTHON" -m pip --python "$directory/bin/python" --disable-pip-version-check --no-input install \
    --quiet "$@"
}

case "$1" in
  packages)
    cd app/web
    npm ci --no-audit --no-fund
    ;;
  page)
    cd app/web
    npm run build
    ;;
  dependencies)
    "$PYTHON" -m venv --without-pip "$2"
    pip_into "$2" --require-hashes -r requirements/base.txt
    ;;
  service)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$PYTHON" -m venv --without-pip "$work/tools"
    pip_into "$work/tools" --require-hashes -r requirements/build.txt
    "$work/tools/bin/python" -m hatchling build --target wheel --directory "$work"
    pip_into "$2" --no-deps --no-index "$work"/*.whl
    ;;
  *)
    echo "usage: $0 packages | page | dependencies DIRECTORY | service DIRECTORY" >&2
    exit 2
    ;;
esac
