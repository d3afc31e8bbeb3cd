// Package quarantine keeps git in a world from running, outside the sandbox, what commands
// wrote: it finds the files that lead git to programs, makes them read-only for commands, and
// moves away what a command left.
package quarantine

// Run is a record that commands run in a world. It is on the disk before the first of them
// starts, and is removed when what they left was examined. The program and the supervisors of
// its commands lock the file: without a lock, nothing of the run is alive.
type Run struct {
	Dir      string   `json:"dir"` // of the Quarantine
	World    string   `json:"world"`
	Inode    uint64   `json:"inode"` // of World
	Skip     []string `json:"skip,omitempty"`
	Writable []string `json:"writable,omitempty"`
	PID      int      `json:"pid"` // of the program
}
