//go:build unix

package term

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	// maxPaste is how much of a pasted text is read as one.
	maxPaste = 1 << 20
)

// Session is one question at the terminal, with all that belongs to it. A method
// gives false when no answer comes any more: the context or the input ended.
type Session struct {
	k      *Keyboard
	ended  <-chan struct{} // no answer comes any more
	end    func()
	typed  chan []byte
	closed chan struct{}
	shown  string // the last prompt
}

// Open shows a question and keeps apart what was being typed, until Close. It
// waits until no key has come for a moment: keys typed before belong to the line.
func (k *Keyboard) Open(ctx context.Context, question string) *Session {
	k.asking.Lock()
	ctx, end := context.WithCancel(ctx)
	s := &Session{k: k, ended: ctx.Done(), end: end, typed: make(chan []byte), closed: make(chan struct{})}
	k.mu.Lock()
	k.session = s
	if k.ended || k.keys() != nil {
		end()
	}
	fmt.Fprintf(k.out, "\n%s\n", question)
	k.mu.Unlock()
	for timer := time.NewTimer(quiet); ; timer.Reset(quiet) {
		select {
		case data := <-s.typed:
			k.mu.Lock()
			k.steerLocked(data, false)
			k.mu.Unlock()
			continue
		case <-timer.C:
		case <-s.ended:
		}
		timer.Stop()
		break
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.line.text) > 0 {
		fmt.Fprintf(k.out, "  (kept for later: %s)\n", Clean(string(k.line.text)))
	}
	return s
}

// Close gives back the line that the question interrupted.
func (s *Session) Close() {
	k := s.k
	k.mu.Lock()
	s.end()
	close(s.closed)
	k.session = nil
	if len(k.line.text) == 0 {
		k.lines()
	} else if !k.ended {
		fmt.Fprintf(k.out, "you were typing: %s", Clean(string(k.line.text)))
	}
	k.mu.Unlock()
	k.asking.Unlock()
}

// next returns what was typed at once, or pasted: whether it was marked as pasted.
func (s *Session) next() (text string, pasted, ok bool) {
	for {
		select {
		case <-s.ended:
			return "", false, false
		case data := <-s.typed:
			text += string(data)
		}
		body, found := strings.CutPrefix(text, pasteBegin)
		if !found {
			return text, false, true
		}
		if body, _, found = strings.Cut(body, pasteEnd); found || len(body) > maxPaste {
			return body, true, true
		}
	}
}

// prompt shows what is asked for now.
func (s *Session) prompt(text string) {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	s.shown = text
	fmt.Fprint(s.k.out, text)
}

// Say shows a line beside the question.
func (s *Session) Say(text string) { s.prompt(text + "\n") }

// Key returns one of some keys, in lower case. Anything else, and several characters
// at once, is no answer.
func (s *Session) Key(prompt, keys string) (rune, bool) {
	s.prompt(prompt)
	for {
		text, pasted, ok := s.next()
		if !ok {
			return 0, false
		}
		r, n := utf8.DecodeRuneInString(text)
		if r = unicode.ToLower(r); !pasted && n == len(text) && strings.ContainsRune(keys, r) {
			s.Say(string(r))
			return r, true
		}
		why := "that key is no answer"
		switch {
		case pasted:
			why = "pasted text is no answer"
		case n < len(text) && text[0] != '\x1b':
			why = "several characters at once are no answer"
		}
		s.prompt("\n  (" + why + ")\n" + prompt)
	}
}

// Text returns a line, which begins as initial. back: the user pressed Escape.
func (s *Session) Text(prompt, initial string) (text string, back, ok bool) {
	l := line{text: []rune(initial)}
	s.prompt(prompt + Clean(initial))
	for {
		typed, pasted, ok := s.next()
		switch {
		case !ok:
			return "", false, false
		case typed == "\x1b":
			s.Say("")
			return "", true, true
		case pasted:
			typed = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ").Replace(typed)
		}
		s.k.mu.Lock()
		done := l.add(s.k.out, []byte(typed))
		s.shown = prompt + Clean(string(l.text))
		s.k.mu.Unlock()
		if len(done) > 0 {
			return done[0], false, true
		}
	}
}
