#!/bin/sh
# Takes the place of clove beside a cloved with failpoints: passes the test's order on
# to one supervisor. cloved passes no environment on.
here=$(dirname "$0")
if [ "$1" = supervise ] && mv "$here/order" "$here/order.taken" 2>/dev/null; then
	# shellcheck source=/dev/null
	. "$here/order.taken"
	export GOFAIL_FAILPOINTS FAILPOINT_SEEN
fi
exec "$here/real/clove" "$@"
