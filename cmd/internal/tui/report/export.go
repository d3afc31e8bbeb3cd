//go:build unix

package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"anamnesis/cmd/internal/timeline"
	"anamnesis/orchestrator/session"
)

// Export writes a task's transcript to the new file name, or to a temporary one if name is empty,
// and returns its path.
func Export(svc *session.Service, task, name string) (path string, err error) {
	var f *os.File
	if name == "" {
		f, err = os.CreateTemp("", task+"-*.md")
	} else {
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("export: %s exists; '/export FILE' names another", name)
	}
	if err != nil {
		return "", fmt.Errorf("export: %w", err)
	}
	out := timeline.NewTranscript(f)
	if err := errors.Join(svc.Ops(task, 0, out.Add), out.Close(), f.Close()); err != nil {
		return "", fmt.Errorf("export %s: %w", f.Name(), err)
	}
	return f.Name(), nil
}
