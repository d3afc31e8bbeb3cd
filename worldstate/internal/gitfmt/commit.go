package gitfmt

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"anamnesis/worldstate/ignore"
)

// A snapshot is a git commit whose message ends in trailers. Ours hold facts about the snapshot
// that the tree does not, so that the tree's id is the world's id:
//
//	Anamnesis-World: 0123456789abcdef              the directory, as a key
//	Anamnesis-Step: task_1@12                      the step that it was saved as
//	Anamnesis-Complete: false                      only if something could not be read
//	Anamnesis-Skip: "run/x.sock" "socket"          a path whose bytes are not stored
//	Anamnesis-Rule: "up" "base" "*.log"            an ignore rule that no file of the tree has
//	Anamnesis-Secret: ".env"                       an ignored file that is not shown
//	Anamnesis-Unstored: "bin/x" "setuid bit"       what a file has that the tree does not hold
const (
	trailerWorld    = "Anamnesis-World"
	trailerStep     = "Anamnesis-Step"
	trailerComplete = "Anamnesis-Complete"
	trailerSkip     = "Anamnesis-Skip"
	trailerRule     = "Anamnesis-Rule"
	trailerSecret   = "Anamnesis-Secret"
	trailerUnstored = "Anamnesis-Unstored"
)

// identity is the author and committer of every snapshot. The user's configuration is not read.
const identity = "anamnesis <anamnesis@localhost>"

// FrozenRule holds the rules of one ignore file that the tree does not contain: info/exclude, a
// .gitignore above the world, or one that ignores itself.
type FrozenRule struct {
	Up, Base string
	Patterns []ignore.Pattern
}

// Commit is a snapshot's commit object, decoded.
type Commit struct {
	Id, Tree Hash
	Parents  []Hash
	Time     time.Time
	Message  string // without the trailers
	Trailers [][2]string
	World    string
	Step     string // TASK@STEP; empty if it was saved without a name or by an early version
	Partial  bool
	Skips    []Skip
	Rules    []FrozenRule
	Secrets  []string // sorted
	Unstored []Skip   // no fact of SameFacts: that a file got a second name is no change
	Missing  error    // why it could not be read; see history
}

// Encode returns the commit object's bytes.
func (c *Commit) Encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	for _, who := range []string{"author", "committer"} {
		fmt.Fprintf(&b, "%s %s %d +0000\n", who, identity, c.Time.Unix())
	}
	fmt.Fprintf(&b, "\n%s\n\n", c.Message)
	fmt.Fprintf(&b, "%s: %s\n", trailerWorld, c.World)
	if c.Step != "" {
		fmt.Fprintf(&b, "%s: %s\n", trailerStep, c.Step)
	}
	if c.Partial {
		fmt.Fprintf(&b, "%s: false\n", trailerComplete)
	}
	// Quoted as ASCII, a name of any bytes is one line of text, and no name can begin another trailer.
	for _, s := range c.Skips {
		fmt.Fprintf(&b, "%s: %+q %+q\n", trailerSkip, s.Path, s.Reason)
	}
	for _, r := range c.Rules {
		for _, p := range r.Patterns {
			fmt.Fprintf(&b, "%s: %+q %+q %+q\n", trailerRule, r.Up, r.Base, p.String())
		}
	}
	for _, path := range c.Secrets {
		fmt.Fprintf(&b, "%s: %+q\n", trailerSecret, path)
	}
	for _, u := range c.Unstored {
		fmt.Fprintf(&b, "%s: %+q %+q\n", trailerUnstored, u.Path, u.Reason)
	}
	for _, t := range c.Trailers {
		fmt.Fprintf(&b, "%s: %s\n", t[0], t[1])
	}
	return b.Bytes()
}

// CleanMessage makes a valid message of any text: without NUL and carriage returns, trimmed,
// not empty.
func CleanMessage(m string) string {
	m = strings.ToValidUTF8(strings.NewReplacer("\x00", "", "\r", "").Replace(m), "?")
	if m = strings.TrimSpace(m); m == "" {
		return "snapshot"
	}
	return m
}

// DecodeCommit decodes a commit object.
func DecodeCommit(id Hash, data []byte) (*Commit, error) {
	bad := func(what string) error { return fmt.Errorf("commit %s: %w: %s", id, ErrCorrupt, what) }
	c := &Commit{Id: id}
	head, body, ok := strings.Cut(string(data), "\n\n")
	if !ok {
		return nil, bad("no message")
	}
	for line := range strings.SplitSeq(head, "\n") {
		word, value, _ := strings.Cut(line, " ")
		switch word {
		case "tree", "parent":
			h, ok := ParseHash(value)
			if !ok {
				return nil, bad("bad " + word)
			}
			if word == "tree" {
				c.Tree = h
			} else {
				c.Parents = append(c.Parents, h)
			}
		case "committer":
			fields := strings.Fields(value)
			if len(fields) < 2 {
				return nil, bad("bad committer")
			}
			sec, err := strconv.ParseInt(fields[len(fields)-2], 10, 64) // a name before it may hold blanks
			if err != nil {
				return nil, bad("bad committer time")
			}
			c.Time = time.Unix(sec, 0).UTC()
		}
	}
	if c.Tree.IsZero() {
		return nil, bad("no tree")
	}
	body = strings.TrimSuffix(body, "\n")
	i := strings.LastIndex(body, "\n\n")
	if i < 0 {
		c.Message = body
		return c, nil
	}
	c.Message = body[:i]
	for line := range strings.SplitSeq(body[i+2:], "\n") {
		if err := c.trailer(line); err != nil {
			return nil, bad(err.Error())
		}
	}
	return c, nil
}

// quotedFields are the trailers whose values are quoted strings, and how many.
var quotedFields = map[string]int{trailerSkip: 2, trailerUnstored: 2, trailerSecret: 1, trailerRule: 3}

func (c *Commit) trailer(line string) error {
	key, value, ok := strings.Cut(line, ": ")
	if !ok {
		return nil // a line of the message
	}
	var f []string
	if n := quotedFields[key]; n > 0 {
		var err error
		if f, err = unquoteFields(value, n); err != nil {
			return err
		}
	}
	switch key {
	case trailerWorld:
		c.World = value
	case trailerStep:
		c.Step = value
	case trailerComplete:
		c.Partial = value == "false"
	case trailerSkip:
		c.Skips = append(c.Skips, Skip{f[0], f[1]})
	case trailerUnstored:
		c.Unstored = append(c.Unstored, Skip{f[0], f[1]})
	case trailerSecret:
		c.Secrets = append(c.Secrets, f[0])
	case trailerRule:
		p, ok := ignore.ParsePattern(f[2])
		if !ok {
			return fmt.Errorf("bad rule %q", f[2])
		}
		if n := len(c.Rules); n > 0 && c.Rules[n-1].Up == f[0] && c.Rules[n-1].Base == f[1] {
			c.Rules[n-1].Patterns = append(c.Rules[n-1].Patterns, p)
		} else {
			c.Rules = append(c.Rules, FrozenRule{f[0], f[1], []ignore.Pattern{p}})
		}
	default:
		c.Trailers = append(c.Trailers, [2]string{key, value})
	}
	return nil
}

// unquoteFields reads n quoted strings separated by spaces.
func unquoteFields(s string, n int) ([]string, error) {
	out := make([]string, 0, n)
	for rest := s; rest != ""; rest = strings.TrimPrefix(rest, " ") {
		q, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, fmt.Errorf("bad quoting in %q", s)
		}
		v, _ := strconv.Unquote(q) // QuotedPrefix has checked it
		out = append(out, v)
		rest = rest[len(q):]
	}
	if len(out) != n {
		return nil, fmt.Errorf("%d fields in %q, not %d", len(out), s, n)
	}
	return out, nil
}

// SameFacts reports whether two snapshots of one tree agree in everything else that is recorded
// of the world.
func (c *Commit) SameFacts(o *Commit) bool {
	a, b := *c, *o
	a.Message, b.Message, a.Trailers, b.Trailers = "", "", nil, nil
	a.Step, b.Step, a.Unstored, b.Unstored = "", "", nil, nil
	a.Parents, b.Parents, a.Time, b.Time = nil, nil, time.Time{}, time.Time{}
	return bytes.Equal(a.Encode(), b.Encode())
}
