//go:build linux && !amd64

package confine

// olderCalls are system calls that newer architectures lack.
func olderCalls() []observed { return nil }
