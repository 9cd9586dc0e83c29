#!/usr/bin/env bash
# Talks with Navi in a session, with curl and jq.
#
#     NAVI_TOKEN=… ./talk.sh "What is on my desk?" [SESSION]
#
# The token is what `navi token add NAME` prints. The answer is printed as it comes. Where Navi asks
# whether she may do something, answer y or n; Ctrl-C stops her.
set -euo pipefail
url=${NAVI_URL:-http://127.0.0.1:8000}
options=(--silent --show-error --fail-with-body --header "Authorization: Bearer $NAVI_TOKEN")

# Sends a body, or none, to a path.
post() { curl "${options[@]}" --request POST "$url$1" ${2+--json "$2"}; }

session=${2:-$(post /sessions '{}' | jq --raw-output .session_id)}
echo "session $session" >&2

# What happens in the session from here on, one event a line.
exec 4< <(exec curl "${options[@]}" --no-buffer "$url/sessions/$session/events")
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
trap 'post "/sessions/$session/stop" >/dev/null; echo stopped >&2; exit 130' INT
trap 'exit 1' TERM

# Answers when the run is done; what comes meanwhile, the events tell.
send() {
    local answer message
    message=$(jq --null-input --arg content "$1" '{$content, consent: "ask"}')
    answer=$(post "/sessions/$session/messages" "$message") || { echo "$answer" >&2; kill $$; }
}
send "$1" &

while read -r line <&4; do
    [[ $line == "data: "* ]] || continue
    event=${line#data: }
    field() { jq --raw-output "$1" <<<"$event"; }
    case $(field '.type + (if .parent_run_id then " of a child" else "" end)') in
    stream_delta) jq --join-output .delta <<<"$event" ;;
    approval_requested*)
        echo "May Navi $(field .request.summary)? [y/n]" >&2
        read -r said
        decision=deny
        [[ $said != y ]] || decision=allow
        post "/sessions/$session/approvals/$(field .approval_id)" "{\"decision\": \"$decision\"}"
        ;;
    error) [[ $(field .recoverable) == true ]] || { field .message >&2; exit 1; } ;;
    stream_end | stream_stopped | run_interrupted) break ;;
    esac
done
echo
