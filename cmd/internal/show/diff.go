//go:build unix

package show

import (
	"fmt"
	"strings"
)

// LineDiff shows a change of a file as the lines that go and come.
func LineDiff(path, was, is string) string {
	lines := func(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }
	before, now := lines(was), lines(is)
	for len(before) > 0 && len(now) > 0 && before[0] == now[0] {
		before, now = before[1:], now[1:]
	}
	for len(before) > 0 && len(now) > 0 && before[len(before)-1] == now[len(now)-1] {
		before, now = before[:len(before)-1], now[:len(now)-1]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", path)
	for _, l := range before {
		if was != "" {
			fmt.Fprintf(&b, "- %s\n", l)
		}
	}
	for _, l := range now {
		if is != "" {
			fmt.Fprintf(&b, "+ %s\n", l)
		}
	}
	return b.String()
}
