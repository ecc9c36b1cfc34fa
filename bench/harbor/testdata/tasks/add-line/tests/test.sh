#!/bin/sh
# lines of the list, whole and counted
if [ "$(cat "$LIST/lines.txt")" = "$(cat /tests/wanted.txt)" ] && [ "$(cat /etc/lines)" -eq "$WANTED" ]; then
	echo '{"reward": 1, "seconds": 0}' > /logs/verifier/reward.json
else
	echo 0 > /logs/verifier/reward.txt
fi
exit 1
