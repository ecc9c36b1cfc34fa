# shellcheck shell=bash
# Functions and variables for every script of integration/. Source it after `set -eu`.

# Everything is built and tested with these tags and flags, so that Go compiles each package once,
# also for another clone of the tree. root adds the tests that need privilege, vm those that change
# the machine on which they run.
# shellcheck disable=SC2034 # read by the scripts that source this file
TAGS=seccomp,urfave_cli_no_docs,netgo,osusergo,runc_nocriu
export GOFLAGS='-trimpath -buildvcs=false'

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$TOP" || exit

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }

die() {
	say "error: $*"
	exit 1
}

# long reports whether each test runs completely (LONG=1, make test-all), and not
# only the sample that `make test` runs.
long() { [ -n "${LONG:-}" ]; }

# processor_time PID prints the seconds of processor time of a shell and of its ended children.
processor_time() {
	local -a stat
	read -ra stat <"/proc/$1/stat"
	echo $(((stat[13] + stat[14] + stat[15] + stat[16]) / 100)) # proc(5): USER_HZ is 100
}

# rows LANE... prints "FOLDER TEST" for the rows of integration/lanes.txt that name these lanes.
rows() {
	awk -v lanes=" $* " '!/^#/ && index(lanes, " " $1 " ") {print $2, $3}' integration/lanes.txt
}

# every_test prints "FOLDER FILE TEST" for each test of the files *_root_test.go and *_vm_test.go.
every_test() {
	git ls-files -co --exclude-standard '*_root_test.go' '*_vm_test.go' | while read -r path; do
		sed -n "s,^func \(Test[A-Za-z0-9_]*\)(.*\*testing\.T).*,$(dirname "$path") $(basename "$path") \1,p" "$path"
	done
}

# chosen LANE prints, in the form of every_test, the tests that the lane runs. RUN, a
# pattern as `go test -run` takes it, and FOLDERS, folders or files, choose among them. A test of the lane
# long is chosen only in the long modes or by name.
chosen() {
	local lane=$1 run=${RUN:-} skip='' only=''
	case $lane in
	root)
		skip=alone
		long || [ -n "$run" ] || skip+=' long'
		;;
	alone | v2) only=$lane ;;
	vm) skip=host ;;
	*) die "the lane $lane runs no root tests" ;;
	esac
	# shellcheck disable=SC2086 # two words are two lanes
	every_test | awk -v lane="$lane" -v only="$(rows $only)" -v skip="$(rows $skip)" \
		-v run="${run%%/*}" -v folders="${FOLDERS+ $FOLDERS }" '
		function table(text, rows,   lines, i) {for (i = split(text, lines, "\n"); i; i--) rows[lines[i]] = 1}
		BEGIN {table(only, wanted); table(skip, unwanted)}
		lane != "vm" && lane != "v2" && $2 ~ /_vm_test\.go$/ {next}
		only != "" && !(($1 " " $3) in wanted) {next}
		($1 " " $3) in unwanted {next}
		folders != "" && !index(folders, " " $1 " ") && !index(folders, " " $1 "/" $2 " ") {next}
		run != "" && $3 !~ run {next}
		{print}'
}

# pattern reads names of tests, one a line, and prints a pattern of exactly these,
# with the part of RUN that chooses among their subtests.
pattern() {
	printf '^(%s)$' "$(sort -u | paste -sd'|')"
	case ${RUN:-} in */*) printf '/%s' "${RUN#*/}" ;; esac
}

# apt_sources prints, as sources.list lines, the Debian archives that this host's own apt
# uses. Anything else that the host has configured stays out.
apt_sources() {
	local list attempt
	for attempt in first second; do
		[ "$attempt" = first ] || apt-get update -qq >&2
		# shellcheck disable=SC2016 # apt fills these in
		list=$(apt-get indextargets --format '$(ORIGIN)|deb $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
			sed -n 's/^Debian|//p' | sort -u)
		[ -z "$list" ] || break
	done
	[ -n "$list" ] || die "cannot find Debian's archives in this host's apt sources"
	printf '%s\n' "$list"
}

# apt_options prints how this host's apt reaches its archives (proxies, date checks), for
# the build of a system. An archive that fails once is asked again.
apt_options() {
	apt-config dump | grep -iE '^Acquire::((https?|ftp)(::|.*Proxy)|Check-(Valid-Until|Date) )' || true
	echo 'Acquire::Retries "5";'
}

# compress FILE compresses its input into FILE; equal input gives equal bytes.
compress() { gzip -9n >"$1"; }

# third_party FOLDER prints the licences of what clove's programs in FOLDER/bin are linked with.
third_party() { go run ./integration/package/licences "$1"/bin/*; }

# binary_of FOLDER prints the name that go test -c gives the test binary of that folder's package.
binary_of() { printf '%s.test' "$(basename "$1")"; }
