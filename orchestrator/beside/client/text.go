package client

import (
	"encoding/base64"
	"os"
	"strconv"
	"syscall"
	"time"
)

// head reads the three members of an event that a hook needs. They are empty where the text is
// no object, or where one of them has an escape: encoding/json then reads it.
func head(data []byte) (session, cwd, name string) {
	depth, key := 0, ""
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth > 0 {
				continue
			}
			for _, c := range data[i+1:] {
				if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
					return "", "", ""
				}
			}
			return session, cwd, name
		case ',':
			key = ""
		case '"':
			begin, escaped := i+1, false
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
					escaped = true
				}
			}
			if i >= len(data) {
				return "", "", ""
			}
			if depth != 1 {
				continue
			}
			text := string(data[begin:i])
			if escaped {
				text = ""
			}
			switch key {
			case "":
				key = text
			case "session_id":
				session = text
			case "cwd":
				cwd = text
			case "hook_event_name":
				name = text
			}
		}
	}
	return "", "", ""
}

// started returns when this process began. Where many hooks begin at once, one may wait long for a
// processor, and its agent waits with it.
func started() time.Time {
	stat, _ := readFile("/proc/self/stat") // on macOS there is none
	uptime, _ := readFile("/proc/uptime")
	return time.Now().Add(-min(age(string(stat), string(uptime)), Wait))
}

// age returns how long ago a process began, from its /proc/PID/stat and /proc/uptime; 0 if they do
// not say. Linux counts both in hundredths of a second.
func age(stat, uptime string) time.Duration {
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] != ')' { // the program's name may hold anything, and is in parentheses
			continue
		}
		began, rest := "", stat[i:]
		for range 21 {
			began, rest = cut(rest, ' ')
		}
		up, _ := cut(uptime, ' ')
		seconds, centis := cut(up, '.')
		from, err := strconv.Atoi(began)
		to, upErr := strconv.Atoi(seconds + centis)
		if err != nil || upErr != nil || to < from {
			return 0
		}
		return time.Duration(to-from) * 10 * time.Millisecond
	}
	return 0
}

// request is message.Request as a line of JSON.
func request(event string, data []byte) []byte {
	line := append([]byte(`{"verb":`), quoted(EventVerb)...)
	line = append(append(line, `,"program":`...), quoted(Program())...)
	line = append(append(line, `,"event":`...), quoted(event)...)
	line = append(line, `,"environ":[`...)
	for i, v := range os.Environ() {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, quoted(v)...)
	}
	return append(append(append(line, `],"data":`...), data...), "}\n"...)
}

// quoted is a text as a string of JSON.
func quoted(text string) []byte {
	const hex = "0123456789abcdef"
	to := append(make([]byte, 0, len(text)+2), '"')
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c < ' ':
			to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}

// replies reads the lines of a recorder, each a message.Reply.
type replies struct {
	fd   int
	read []byte
}

// next returns the text for the agent in the next line; not ok if there is none, or if the
// recorder ends or has failed.
func (r *replies) next() (reply []byte, ok bool) {
	for {
		for i, c := range r.read {
			if c == '\n' {
				line := r.read[:i]
				r.read = r.read[i+1:]
				return content(line)
			}
		}
		more, err := readSome(r.fd)
		if r.read = append(r.read, more...); err != nil || len(more) == 0 || len(r.read) > maxReplyBytes {
			return nil, false
		}
	}
}

// content is the text for the agent in a line of a recorder.
func content(line []byte) ([]byte, bool) {
	const before, after = `{"ok":true,"reply":`, `,"ends":false}`
	if len(line) < len(before)+len(after) || string(line[:len(before)]) != before || !hasEnding(string(line), after) {
		return nil, false
	}
	text := line[len(before) : len(line)-len(after)]
	if string(text) == "null" {
		return nil, true
	}
	if len(text) < 2 || text[0] != '"' {
		return nil, false
	}
	reply, err := base64.StdEncoding.DecodeString(string(text[1 : len(text)-1]))
	return reply, err == nil
}

// readAll reads to the end, and limit bytes at most.
func readAll(fd, limit int) (data []byte, err error) {
	for len(data) < limit {
		more, err := readSome(fd)
		if err != nil || len(more) == 0 {
			return data, err
		}
		data = append(data, more...)
	}
	return data, nil
}

func readFile(path string) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	return readAll(fd, 1<<16)
}

func readSome(fd int) ([]byte, error) {
	var b [8192]byte
	for {
		n, err := syscall.Read(fd, b[:])
		if err != syscall.EINTR {
			return b[:max(n, 0)], err
		}
	}
}

func writeAll(fd int, data []byte) bool {
	for len(data) > 0 {
		n, err := syscall.Write(fd, data)
		if err != nil && err != syscall.EINTR {
			return false
		}
		data = data[max(n, 0):]
	}
	return true
}

func hasEnding(text, ending string) bool {
	return len(text) >= len(ending) && text[len(text)-len(ending):] == ending
}

func cut(text string, at byte) (before, after string) {
	for i := range len(text) {
		if text[i] == at {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}
