package beside

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
)

// offFile in a project stops the recording there.
const offFile = ".anamnesis/off"

// Paused is the file that stops all recording.
func Paused(h taskdir.Home) string { return filepath.Join(all(h), "paused") }

func Pause(h taskdir.Home) error {
	if err := os.MkdirAll(filepath.Dir(Paused(h)), 0o700); err != nil {
		return err
	}
	return os.WriteFile(Paused(h), nil, 0o600)
}

// Unpause ends a pause, if there is one.
func Unpause(h taskdir.Home) error { return os.RemoveAll(Paused(h)) }

// Log is the file to which hooks write errors, since their standard error must be empty.
func Log(h taskdir.Home) string { return filepath.Join(all(h), "errors.log") }

// maxLogBytes is the size at which the log of errors begins anew.
const maxLogBytes = 1 << 20

func LogError(h taskdir.Home, what string, err error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(Log(h)); err == nil && info.Size() > maxLogBytes {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	_ = os.MkdirAll(filepath.Dir(Log(h)), 0o700) // without it there is no file, either
	f, openErr := os.OpenFile(Log(h), flags, 0o600)
	if openErr != nil {
		return // the error cannot be reported
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s: %s\n", time.Now().UTC().Format(time.RFC3339), what,
		strings.Join(strings.Fields(err.Error()), " "))
}

// Findings lists what doctor says of recordings, a line each: why other agents are not
// recorded in a directory, the last error of a hook, events that
// wait, and recorders that are not of the running program (see Program).
func Findings(h taskdir.Home, dir, program string) (lines []string) {
	if _, err := os.Lstat(Paused(h)); err == nil {
		lines = append(lines, "other agents are not recorded: recording is paused until you end the pause")
	}
	file := filepath.Join(root(h, "", head{Cwd: dir}), offFile)
	if _, err := os.Lstat(file); err == nil {
		lines = append(lines, "other agents are not recorded in this directory: delete "+file+" to end that")
	}
	if data, err := os.ReadFile(Log(h)); err == nil {
		all := strings.Split(strings.TrimSpace(string(data)), "\n")
		lines = append(lines, fmt.Sprintf("other agents: %s of hooks in %s, which you can delete; the last: %s",
			quote.Number(len(all), "error"), Log(h), cmp.Or(all[len(all)-1], "not written, the disk was full")))
	}
	if n := waiting(h); n > 0 {
		lines = append(lines, fmt.Sprintf("other agents: %s not recorded yet; the next hook in the same directory "+
			"records what waits there", quote.Number(n, "event")))
	}
	if n := otherRecorders(h, program); n > 0 {
		lines = append(lines, fmt.Sprintf("other agents: %s of another build of this program; the next hook in the "+
			"same directory replaces it", quote.Number(n, "recorder")))
	}
	return lines
}

// callFile is changed with each call that an agent's model makes to an Anamnesis tool.
func callFile(h taskdir.Home, agent sessions.Agent) string {
	return filepath.Join(all(h), "called-"+string(agent))
}

// NoteCall records that a client of the MCP server has called a tool. Clients that no agent is known by are left out.
func NoteCall(h taskdir.Home, client string) error {
	for _, agent := range sessions.Agents() {
		name, _, _ := strings.Cut(string(agent), "-")
		if !strings.HasPrefix(client, name) {
			continue
		}
		err := os.MkdirAll(all(h), 0o700)
		if err == nil {
			err = os.WriteFile(callFile(h, agent), []byte(client+"\n"), 0o600)
		}
		return err
	}
	return nil
}

// Week says whether an agent has used this program in the last seven days: its recorded sessions, and
// whether its model called a tool.
func Week(h taskdir.Home, agent sessions.Agent, now time.Time) string {
	since, n := now.AddDate(0, 0, -7), 0
	list, err := SessionsOf(h, agent)
	for _, t := range list {
		if t.Changed.After(since) {
			n++
		}
	}
	said := "this week: " + quote.Number(n, "session") + " recorded"
	if err != nil {
		said = fmt.Sprintf("this week: sessions cannot be listed (%v)", err)
	}
	switch info, err := os.Stat(callFile(h, agent)); {
	case err != nil:
		return said + ", its model has never called an Anamnesis tool"
	default:
		return said + ", its model last called an Anamnesis tool on " + info.ModTime().Format("2006-01-02 15:04")
	}
}

func recordingOff(h taskdir.Home, dir string) bool {
	return slices.ContainsFunc([]string{filepath.Join(dir, offFile), Paused(h)}, func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	})
}
