package suite

import (
	"clove.run/clove/policies"
)

// Version is the version of the format that this build reads.
const Version = 1

// Suite is the document. Dir and SHA256 are not in it.
type Suite struct {
	Version      int           `json:"version" required:"true" doc:"the version of this format: 1"`
	Name         string        `json:"name" required:"true" doc:"a word of letters, digits, '-' and '_'"`
	Release      string        `json:"release" required:"true" doc:"the version of the suite itself, any text"`
	Description  string        `json:"description,omitempty" doc:"what it measures, in a sentence"`
	Environments []Environment `json:"environments,omitempty" doc:"what tasks run in; a task without one runs in this host's base system"`
	Limits       Limits        `json:"limits,omitzero" doc:"limits of each attempt, unless its task has others"`
	Tasks        []Task        `json:"tasks" required:"true" doc:"what agents are asked for"`
	Agents       []Agent       `json:"agents" required:"true" doc:"who is asked"`
	Seeds        []int64       `json:"seeds,omitempty" doc:"each agent tries each task once with each seed, in BENCH_SEED; [1] if it is absent"`
	ClockStart   policies.Text `json:"clock_start,omitempty" doc:"what the monotonic clock and the uptime begin at in every sandbox, 1s to ten years; the machine's own if it is absent. It sets no wall clock"`
	Parallel     int           `json:"parallel,omitempty" doc:"attempts at once, as far as processors and memory allow; as many as these allow if it is absent"`

	Dir    string `json:"-"` // the folder that paths begin at
	SHA256 string `json:"-"` // of the document and of every file that it names
}

// Environment is what tasks run in.
type Environment struct {
	Name   string `json:"name" required:"true" doc:"a word"`
	Rootfs string `json:"rootfs,omitempty" doc:"a directory that replaces the host's base system"`
	Setup  *Setup `json:"setup,omitempty" doc:"commands that fill /env, once for all attempts; read-only for agents and graders"`
	// With RootKept the whole root is what an attempt works in and leaves.
	Root      string            `json:"root,omitempty" enum:"shared|kept" doc:"kept: set-up, agent and grader may change the whole root; set-up commands and agents begin with what was left before them, graders as their root says, and there is no /env or /workspace. Needs root"`
	Disk      policies.Text     `json:"disk,omitempty" doc:"with root: kept, the size of the layer with all changes, of every phase"`
	Variables map[string]string `json:"variables,omitempty" doc:"of agents and graders"`
	Workdir   string            `json:"workdir,omitempty" doc:"where agents and graders begin, an absolute path"`
	User      string            `json:"user,omitempty" doc:"the user inside, of set-up, agents and graders"`
	Note      string            `json:"note,omitempty" doc:"any text, such as what it stands for"`
}

// Setup fills a folder that attempts see read-only.
type Setup struct {
	Commands [][]string `json:"commands" required:"true" doc:"each is executed in a sandbox, in this order; what they write into /env stays"`
	Files    string     `json:"files,omitempty" doc:"a folder of the suite, shown at /workspace; with root: kept read-only at /setup"`
	Limits   Limits     `json:"limits,omitzero" doc:"limits of each command"`
	Network  Network    `json:"network,omitzero" doc:"what the commands reach; public if it is absent"`
}

// Task is one thing that agents are asked for.
type Task struct {
	Name        string    `json:"name" required:"true" doc:"a word"`
	Instruction string    `json:"instruction" required:"true" doc:"what the agent reads"`
	Files       string    `json:"files,omitempty" doc:"a folder of the suite that the agent finds, as a copy, at /workspace"`
	Environment string    `json:"environment,omitempty" doc:"the name of an environment"`
	Limits      Limits    `json:"limits,omitzero" doc:"limits of the agent"`
	Network     Network   `json:"network,omitzero" doc:"what the agent reaches; nothing if it is absent"`
	Grade       Grade     `json:"grade" required:"true" doc:"how the result is graded"`
	Solution    *Solution `json:"solution,omitempty" doc:"the task's own solution, which only an agent with solution: true finds"`
}

// Solution is what a reference agent runs.
type Solution struct {
	Files     string            `json:"files" required:"true" doc:"a folder of the suite, shown read-only at /solution"`
	Variables map[string]string `json:"variables,omitempty" doc:"of that agent"`
}

// Limits are those of clove run, in its notation.
type Limits struct {
	Memory  policies.Text `json:"memory,omitempty" doc:"size, caches included; 256M"`
	CPUs    policies.Text `json:"cpus,omitempty" doc:"CPU seconds per second, a hard cap; 1"`
	Pids    policies.Text `json:"pids,omitempty" doc:"processes and threads at once; 128"`
	Timeout policies.Text `json:"timeout,omitempty" doc:"wall clock time; 5m"`
	CPUTime policies.Text `json:"cpu_time,omitempty" doc:"CPU time of all processes together"`
	Output  policies.Text `json:"output,omitempty" doc:"size of stdout and stderr together; 4M"`
	Disk    policies.Text `json:"disk,omitempty" doc:"size of the writable layer; 256M"`
}

// Network is what a phase reaches.
type Network struct {
	Mode  string   `json:"mode,omitempty" enum:"none|allowlist|public" doc:"none, allowlist or public; allowlist if allow names something"`
	Allow []string `json:"allow,omitempty" doc:"targets, as clove run --allow"`
	Deny  []string `json:"deny,omitempty" doc:"targets, as clove run --deny"`
}

// Grade says how an attempt is graded. The checks count as much as the command: the score is
// the command's, or 0 if a check fails.
type Grade struct {
	Command   []string          `json:"command,omitempty" doc:"executed in a sandbox of its own; sees the attempt's files at /attempt and its output at /output, read-only. Exit status 0 is the score 1"`
	Score     string            `json:"score,omitempty" enum:"exit|descriptor|reward" doc:"descriptor: the score from 0 to 1 is the last line that the command writes to descriptor 3. reward: it is in reward.json or reward.txt in /logs/verifier, whatever the exit status"`
	Files     string            `json:"files,omitempty" doc:"a folder of the suite that the grader finds, as a copy, at /workspace; agents never see it"`
	Root      string            `json:"root,omitempty" enum:"own|kept" doc:"with root: kept in the environment. own, if it is absent: the grader begins with the task's own root, and sees the whole one that the agent left read-only at /attempt/root. kept: it begins with a copy of that one, and executes what the agent could change"`
	At        string            `json:"at,omitempty" doc:"where its files are, an absolute path other than /workspace; they are read-only then"`
	Variables map[string]string `json:"variables,omitempty" doc:"of the grader"`
	User      string            `json:"user,omitempty" doc:"the user inside; root lets a grader execute an agent's program as another user"`
	Limits    Limits            `json:"limits,omitzero" doc:"limits of the grader"`
	Network   Network           `json:"network,omitzero" doc:"what the grader reaches; nothing if it is absent"`
	Expect    []Expectation     `json:"expect,omitempty" doc:"what clove itself checks about the attempt's files"`
	Pass      float64           `json:"pass,omitempty" doc:"the score from which the attempt has passed; 1 if it is absent"`
}

// Expectation is about one file below /workspace, or about stdout or stderr.
type Expectation struct {
	File    string `json:"file" required:"true" doc:"a path below /workspace, or stdout or stderr with a ':' in front"`
	Text    string `json:"text,omitempty" doc:"its whole content; blanks and line ends at its end do not count"`
	Matches string `json:"matches,omitempty" doc:"a regular expression (RE2) that a part of it matches"`
	Absent  bool   `json:"absent,omitempty" doc:"it must not exist"`
}

// Agent is one contestant.
type Agent struct {
	Name        string            `json:"name" required:"true" doc:"a word"`
	Version     string            `json:"version,omitempty" doc:"any text; in every report"`
	Command     []string          `json:"command" required:"true" doc:"{instruction}, {task} and {seed} stand for their values; the instruction is also in the file /task/instruction.md"`
	Files       string            `json:"files,omitempty" doc:"a folder of the suite, shown read-only at /agent"`
	Environment map[string]string `json:"environment,omitempty" doc:"variables"`
	Pass        []string          `json:"pass,omitempty" doc:"variables of the caller's that are passed on; their values are in no result"`
	Metrics     string            `json:"metrics,omitempty" enum:"file|descriptor" doc:"descriptor: its lines of figures may also be written to descriptor 3; file, if it is absent: only to the file that BENCH_METRICS names"`
	Models      []string          `json:"models,omitempty" doc:"models that it may call, as clove run --model"`
	Budgets     []string          `json:"budgets,omitempty" doc:"DIMENSION=AMOUNT, as clove run --budget; an attempt that spends one has ended, with a result"`
	Solution    bool              `json:"solution,omitempty" doc:"it finds the task's own solution at /solution: it shows that the tasks can be solved"`
	Network     Network           `json:"network,omitzero" doc:"what this agent reaches in addition to what its task allows"`
}
