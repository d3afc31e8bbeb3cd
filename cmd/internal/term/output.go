package term

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/quote"
)

// How much of a command's output is shown once it has ended.
const (
	HeadLines = 2
	TailLines = 5
)

// closing matches the lines that close a command's result for the model.
var closing = regexp.MustCompile(`^\[(exit -?\d+|interrupted: .*|timed out .*|no output)\]$`)

// Output returns a program's output as a terminal shows it, safe: of a line that carriage returns
// overwrite, its last state.
func Output(s string) string {
	if !strings.ContainsRune(s, '\r') {
		return Clean(s)
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		l = strings.TrimRight(l, "\r")
		lines[i] = l[strings.LastIndexByte(l, '\r')+1:]
	}
	return Clean(strings.Join(lines, "\n"))
}

// Result is a command's output without the lines that close it.
func Result(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(slices.DeleteFunc(lines, closing.MatchString), "\n")
}

// How much is kept around the line that says why a command failed.
const (
	beforeFailure, afterFailure = 2, 5
	afterAll                    = 3 // of the end, where runners count
)

// Folded is Shortened for a command's output. If the command failed, the lines around the one that says why stay.
func Folded(command, text string, exit, gone int, whole string) []string {
	f, failed := failure.Read(failure.Output{Command: command, Text: text, Exit: exit, HasExit: true})
	lines := outputLines(text)
	if !failed || f.Silent || f.Index < 0 || len(lines) <= HeadLines+TailLines+1 {
		return Shortened(text, HeadLines, TailLines, gone, whole)
	}
	var out []string
	hidden := 0
	for i, l := range lines {
		if i > 0 && i < f.Index-beforeFailure || i > f.Index+afterFailure && i < len(lines)-afterAll {
			hidden++
			continue
		}
		switch {
		case hidden == 1:
			out = append(out, lines[i-1])
		case hidden > 1:
			out = append(out, "… "+quote.Number(hidden, "line"))
		}
		out, hidden = append(out, l), 0
	}
	for i := len(out) - 1; i >= 0; i-- { // the last remark has the size, too
		if strings.HasPrefix(out[i], "… ") {
			out[i] = fmt.Sprintf("%s, %s in all%s", out[i], Size(len(text)+gone), whole)
			break
		}
	}
	return out
}

// outputLines returns an output's lines as a terminal shows them.
func outputLines(text string) []string {
	return strings.Split(strings.ReplaceAll(Output(strings.TrimRight(text, "\n")), "\t", "    "), "\n")
}

// Shortened returns the first and the last lines of an output and, where others are left out, a
// remark with its size. gone is the number of bytes that text lacks; whole says where all of it is.
func Shortened(text string, head, tail, gone int, whole string) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	lines := outputLines(text)
	over := len(lines) - head - tail
	if over <= 1 {
		return lines
	}
	count := quote.Number(over, "line") + ", "
	if gone > 0 { // text lacks lines, too
		count = ""
	}
	return slices.Replace(lines, head, head+over, fmt.Sprintf("… %s%s in all%s", count, Size(len(text)+gone), whole))
}

func Size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
