// Package guard runs commands: with a filtered environment (environ.go), under a supervisor
// that ends everything it started (supervise.go), in a sandbox (sandbox.go), which the
// supervisor enters with the thread that starts the command (package confine). What a project
// brings runs in a narrower sandbox with granted permissions (grants.go). Package consent
// stores what users approved by content, package approval decides which calls may run, package
// quarantine keeps git from running what commands wrote.
//
// # How a command runs
//
// Run starts this same program again, under the name "anamnesis-supervisor". The supervisor
// makes itself the reaper of all its descendants, waits for a go byte, starts the command in a
// session of its own, and decides when it is over: when the kernel reports that the supervisor
// has no child left, nothing the command started is alive, even if it was detached (setsid,
// double fork, nohup, disown, daemon). It ends the process tree when the time limit is
// reached, when Run's context ends, when the command has exited, and when its parent dies,
// even by SIGKILL: then the pipe between the two closes, which is the order to stop.
//
// If a command kills its own supervisor, Run, or after a crash EndLeftover, finds its
// processes by a variable in their environment (RunVariable) and ends them. A process that
// clears its environment *and* whose supervisor was killed is out of reach without a sandbox.
// With one, the supervisor is the first process of a PID namespace, which cannot be killed
// from within, and whose end is the end of all others.
//
// In a sandbox a command has a limited number of processes (limit_linux.go), so that a fork
// bomb can be ended. Where the supervisor's signals reach the command's processes only (a PID
// namespace, or Landlock), one call signals all of them.
//
// This describes Linux. Other Unix systems end the command's process group only; see Missing.
// On other systems Run refuses.
package guard
