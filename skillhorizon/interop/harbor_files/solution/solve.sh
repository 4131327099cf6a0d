#!/bin/sh
# The reference run, call by call, through the same server that an agent uses.
exec python3 "$(dirname "$0")/solve.py"
