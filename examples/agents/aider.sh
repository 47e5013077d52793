#!/bin/sh
# A builder around a command-line editor such as aider.
#
#   builder: { mode: command, command: "examples/agents/aider.sh", env_pass: [OPENAI_API_KEY] }
#
# The prompt comes on stdin, the worktree is the current directory. What is said on stderr is shown and logged; the
# last JSON object on stdout is the answer. A non-zero exit is a broken attempt and is tried again.
set -eu

prompt="$TMPDIR/prompt.md"
cat > "$prompt"

# It must not commit (the controller does), ask, or look for a newer version of itself.
aider --yes-always --no-auto-commits --no-check-update --analytics-disable \
    ${AIDER_MODEL:+--model "$AIDER_MODEL"} --message-file "$prompt" >&2

# Files it changed or added, as a JSON list.
files=$(git ls-files --modified --others --deleted --exclude-standard | sort -u |
    sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&"/' | paste -sd, -)

printf '{"changed_files":[%s],"tests_ran":false,"tests_passed":false,"notes":"aider, without further account"}\n' \
    "$files"
