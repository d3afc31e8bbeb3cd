package client

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	const rest = " S 1 2 2 0 -1 4194304 9 9 0 0 1 2 0 0 20 0 1 0 12345 6 7 8"
	for _, tt := range []struct {
		stat, uptime string
		want         time.Duration
	}{
		{"77 (sh)" + rest, "124.95 9.00\n", 1500 * time.Millisecond},
		{"77 (a) S 1 (b c)" + rest, "123.45 9.00\n", 0},
		{"77 (sh)" + rest, "124.05 9.00\n", 600 * time.Millisecond},
		{"77 (sh)" + rest, "60.00 9.00\n", 0}, // of a container, and the start of the machine
		{"77 (sh) S 1", "124.95 9.00\n", 0},
		{"", "", 0},
	} {
		if got := age(tt.stat, tt.uptime); got != tt.want {
			t.Errorf("%q, %q: %v, want %v", tt.stat, tt.uptime, got, tt.want)
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", os.Getppid()))
	if err != nil {
		t.Fatal(err)
	}
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil || age(string(stat), string(uptime)) == 0 {
		t.Errorf("the parent has no age: %s, %s, %v", stat, uptime, err)
	}
}
