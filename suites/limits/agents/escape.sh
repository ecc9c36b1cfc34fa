#!/bin/sh
# Tries to reach what is not its own. Whatever succeeds, the next attempt would notice.
exec 2> /dev/null
mount -t tmpfs none /usr; umount -l /proc
mknod /tmp/disk b 8 0
echo 1 > /proc/sys/kernel/panic; echo b > /proc/sysrq-trigger
echo 0 > /sys/fs/cgroup/memory/memory.limit_in_bytes; echo max > /sys/fs/cgroup/memory.max
for process in /proc/[0-9]*; do [ "$process" = /proc/$$ ] || kill -9 "${process#/proc/}"; done
unshare -Ur true; nsenter -t 1 -m true; chroot / true
echo spoiled > /usr/bin/perl; echo spoiled > /task/instruction.md; echo spoiled > /agent/steady.sh
touch /tmp/left /workspace/left
perl -e 'setpgrp; fork or exec "sleep", "1000"'
exit 3
