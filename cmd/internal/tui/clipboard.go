//go:build unix

package tui

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/orchestrator/picture"
)

// clipboardTimeout bounds one program that reads the clipboard.
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
	var tried []string
	for _, line := range [][]string{
		{"wl-paste", "--no-newline", "--type", "image/png"}, {"xclip", "-selection", "clipboard", "-t", "image/png", "-o"},
		{"osascript", "-e", "get the clipboard as «class PNGf»"},
	} {
		if _, err := exec.LookPath(line[0]); err != nil {
			continue
		}
		limit, cancel := context.WithTimeout(ctx, clipboardTimeout)
		data, err := exec.CommandContext(limit, line[0], line[1:]...).Output()
		cancel()
		if code, ok := bytes.CutPrefix(bytes.TrimSpace(data), []byte("«data PNGf")); ok { // osascript prints hexadecimal digits
			data, err = hex.DecodeString(string(bytes.TrimSuffix(code, []byte("»"))))
		}
		if err == nil && picture.Format(data) != "" {
			return data, nil
		}
		tried = append(tried, line[0])
	}
	if len(tried) == 0 {
		return nil, errors.New("no program reads the clipboard: install wl-clipboard (Wayland) or xclip (X11), or write the image's path into the message")
	}
	return nil, fmt.Errorf("%s found no image in the clipboard; copy one, or write its path into the message", strings.Join(tried, " and "))
}
