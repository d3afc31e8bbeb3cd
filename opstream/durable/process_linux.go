package durable

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ProcessStart returns when a process began, in clock ticks since the system did; 0 if
// unknown. Id and start together identify a process, since ids are reused.
func ProcessStart(pid int) uint64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is the name, in parentheses, and may hold anything.
	const afterName = 19 // the 22nd of proc_pid_stat(5)
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= afterName {
		return 0
	}
	start, _ := strconv.ParseUint(string(fields[afterName]), 10, 64) // the kernel writes a number
	return start
}
