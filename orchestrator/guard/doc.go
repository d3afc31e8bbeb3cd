// Package guard runs commands: what one may see of the environment (environ.go), under a
// supervisor that ends everything it started (supervise.go), in a sandbox (sandbox.go),
// which the supervisor enters with the thread that starts the command (package
// confine). What a project brings runs in a narrower sandbox and with what was
// granted (grants.go). Package consent keeps what users approved by content, package
// approval decides which calls may run, package quarantine keeps git from running what
// commands wrote.
//
// # How a command runs
//
// Run starts this same program again, under the name "anamnesis-supervisor".
// The supervisor makes itself the reaper of all its descendants, waits for a
// go byte, starts the command in a session of its own, and is the only one to
// say when it is over: when the kernel reports that the supervisor has no
// child left, nothing the command started is alive, however it was detached
// (setsid, double fork, nohup, disown, daemon). It tears the tree down when the
// time limit is reached, when Run's context ends, when the command has
// exited, and when its parent dies, even by SIGKILL: the pipe between the two
// closes, and that is the order to stop.
//
// A command that kills its own supervisor is found again by a variable in its
// processes' environment (RunVariable) and ended by Run, or after a crash by
// EndLeftover. A process that clears its environment *and* whose supervisor
// was killed is out of reach without a sandbox; with one, the supervisor is the
// first process of a PID namespace, which cannot be killed from within, and whose
// end is the end of all others.
//
// In a sandbox a command has a limited number of processes (limit_linux.go), so
// that one which starts them without end can be ended.
//
// Linux has all of this. Other Unix systems end the command's process group
// only; Missing says so. Elsewhere Run refuses.
package guard
