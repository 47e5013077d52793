#!/bin/sh
# A reviewer that is a plain shell script: it approves unless the change breaks a rule of the house.
#
#   reviewer: { mode: command, command: "examples/agents/house-rules.sh" }
#
# AUTOPILOT_STEP tells what is asked; AUTOPILOT_SCHEMA names the JSON Schema the answer must satisfy, if there is one.
# The prompt on stdin holds the change as a diff.
set -eu

if [ "$AUTOPILOT_STEP" = uat_generate ]; then
    cat > /dev/null
    printf '# Acceptance cases\n\n## 1. It starts\n\nStart it and see that it greets.\n'
    exit 0
fi

# Added lines of the diff that print for debugging.
added=$(grep -c '^+.*console\.log(' || true)
if [ "$added" -gt 0 ]; then
    printf '{"verdict":"REQUEST_CHANGES","summary":"%s lines print for debugging","issues":[%s]}\n' "$added" \
        '{"severity":"major","message":"console.log is left in the change","fix":"remove it"}'
else
    printf '{"verdict":"APPROVE","summary":"keeps to the rules of the house","issues":[]}\n'
fi
