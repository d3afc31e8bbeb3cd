//go:build unix

package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/orchestrator/picture"
)

const clipboardTimeout = 5 * time.Second

// pastedMsg is the path of an image from the clipboard.
type pastedMsg string

// pasteVerb writes the clipboard's image to a file and its path into the line: sending the line
// attaches it. Terminals paste text only.
func (m *screen) pasteVerb([]string) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		data, err := clipboardImage(ctx)
		if err != nil {
			return errorMsg{fmt.Errorf("/paste: %w", err)}
		}
		f, err := os.CreateTemp("", "anamnesis-paste-*."+picture.Format(data))
		if err == nil {
			_, err = f.Write(data)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return errorMsg{fmt.Errorf("/paste: %w", err)}
		}
		return pastedMsg(f.Name())
	}
}

// clipboardImage asks the clipboard programs of Wayland, X11 and macOS, in this order.
func clipboardImage(ctx context.Context) ([]byte, error) {
	for _, line := range []string{
		"wl-paste --no-newline --type image/png", "xclip -selection clipboard -t image/png -o",
		"osascript -e 'get the clipboard as «class PNGf»' | sed 's/«data PNGf//; s/»//' | xxd -r -p"} {
		limit, cancel := context.WithTimeout(ctx, clipboardTimeout)
		data, err := exec.CommandContext(limit, "sh", "-c", line).Output()
		cancel()
		if err == nil && picture.Format(data) != "" {
			return data, nil
		}
	}
	return nil, errors.New("no image in the clipboard, or no program that reads it: install wl-clipboard (Wayland) " +
		"or xclip (X11), or write the image's path into the message")
}
