// Package harbor translates Harbor's task folders into a suite of clove bench.
//
// A task folder has task.toml, instruction.md, environment/Dockerfile, tests/test.sh and perhaps
// solution/solve.sh. The translation uses what every suite has: an environment whose whole root
// is kept (suite.RootKept), set up by a script made of the Dockerfile; the tests as the grader's
// files at /tests; the reward as the score; the solution for an agent named oracle.
//
// It asks no registry: the caller says which folder, or that this host's base system, stands for
// an image. It executes nothing, and reads Dockerfiles by a closed list of instructions.
//
// # What it refuses
//
// Whatever would make the task another one is refused, with the file and the line: an unknown
// key or instruction, stages, further containers, steps, a verifier with an environment of its
// own, tests that ask for a network that was not granted.
package harbor
