package gitdir

// Disarm are settings, as those of git -c, that keep away programs which a repository of others
// could name.
var Disarm = []string{"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.alternateRefsCommand=", "gc.auto=0", "maintenance.auto=false"}

// Environment keeps git from the settings of the host and of the user, and from a partial clone's server.
var Environment = []string{"LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_NO_LAZY_FETCH=1"}

// Shown is a configuration with those settings of another that name no program and have no
// password, as Read shows them.
func Shown(text string) string { return shown(settingsIn(text)) }
