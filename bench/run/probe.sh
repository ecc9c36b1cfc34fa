#!/bin/sh
# What a sandbox of the bench finds. Each line is NAME=VALUE; no line: it is not known here.
# v1 mounts one hierarchy per controller, v2 has one directory.
put() { [ -n "$2" ] && echo "$1=$2"; }
file() { for f in "$@"; do [ -r "$f" ] && { cat "$f"; return; }; done; }
cgroup=/sys/fs/cgroup
put memory "$(file $cgroup/memory/memory.limit_in_bytes $cgroup/memory.max)"
put memsw "$(file $cgroup/memory/memory.memsw.limit_in_bytes)"
put swap "$(file $cgroup/memory.swap.max)"
put quota "$(file $cgroup/cpu/cpu.cfs_quota_us $cgroup/cpu,cpuacct/cpu.cfs_quota_us)"
put period "$(file $cgroup/cpu/cpu.cfs_period_us $cgroup/cpu,cpuacct/cpu.cfs_period_us)"
put max "$(file $cgroup/cpu.max)"
put burst "$(file $cgroup/cpu/cpu.cfs_burst_us $cgroup/cpu,cpuacct/cpu.cfs_burst_us $cgroup/cpu.max.burst)"
while read -r key value; do [ "$key" = Cpus_allowed_list: ] && put cpus "$value"; done < /proc/self/status
put zone "$(date +%Z)"
put TZ "$TZ"
put LANG "$LANG"
put LC_ALL "$LC_ALL"
put umask "$(umask)"
put hostname "$(cat /proc/sys/kernel/hostname)"
put PYTHONHASHSEED "$PYTHONHASHSEED"
put SOURCE_DATE_EPOCH "$SOURCE_DATE_EPOCH"
put uptime "$(file /proc/uptime)"
put left "$(find /workspace /tmp -mindepth 1 | wc -l)"
