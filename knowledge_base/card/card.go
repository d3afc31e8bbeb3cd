package card

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of one card. A card beyond one of them is refused with a
// [Error]; nothing is cut silently.
const (
	MaxBytes            = 1 << 20  // the whole file
	MaxFrontMatterBytes = 64 << 10 // the YAML part of it
	MaxTopicRunes       = 300
	MaxBullets          = 200 // bullets of one card
	MaxListItems        = 200 // entries of tags, supersedes, contradicts, generalizes, ranges
	maxYAMLDepth        = 16
	maxMarkdownDepth    = 64
)

// Type is the value every card's front matter starts with.
const Type = "knowledge_card"

// State is the stage of a card's life.
type State string

// The states. Draft and reviewed cards are recalled; retired and superseded
// ones never are.
const (
	Draft      State = "draft"
	Reviewed   State = "reviewed"
	Retired    State = "retired"
	Superseded State = "superseded"
)

// Valid reports whether s is one of the known states.
func (s State) Valid() bool {
	return s == Draft || s == Reviewed || s == Retired || s == Superseded
}

// Scope says where a card holds. An empty field is "anywhere".
type Scope struct {
	Repo     string `json:"repo,omitempty"`
	Language string `json:"language,omitempty"`
	Tool     string `json:"tool,omitempty"`
	Version  string `json:"version,omitempty"`
}

// Range is a closed range of operation numbers, written "12-48".
type Range struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// Provenance says what a card was made from.
type Provenance struct {
	Task         string  `json:"task,omitempty"`
	JumpOp       uint64  `json:"jump_op,omitempty"` // operation number of the jump; 0: none
	Ranges       []Range `json:"ranges,omitempty"`  // the operations that are its evidence
	Model        string  `json:"model,omitempty"`   // what wrote it: a model's name or "extractor"
	EvidenceHash string  `json:"evidence_hash,omitempty"`
	// Tainted: the evidence holds text from outside (network, an MCP server,
	// a file outside the world). Until a user has reviewed such a card it is
	// shown to no task but its own.
	Tainted bool `json:"tainted"`
	// Shown are the cards its task had been shown before, and theirs: what it was
	// drawn from is not independent of them.
	Shown []string `json:"shown,omitempty"`
}

// Card is one lesson: one markdown file.
//
// A Card from [Parse] holds the bytes it came from; [Card.Markdown] changes
// in them only what was changed in the fields. A Card is not safe for
// concurrent use while it is being changed.
type Card struct {
	Topic       string     `json:"topic"`       // one line
	SourceTask  string     `json:"source_task"` // the task it was learned in
	ID          string     `json:"id"`
	State       State      `json:"state"` // "" is written as draft
	Created     time.Time  `json:"created"`
	VerifiedAt  *time.Time `json:"verified_at,omitempty"` // set by people only
	Expires     *time.Time `json:"expires,omitempty"`     // flagged afterwards, never deleted
	Scope       Scope      `json:"scope"`
	Provenance  Provenance `json:"provenance"`
	Supersedes  []string   `json:"supersedes,omitempty"`
	Contradicts []string   `json:"contradicts,omitempty"`
	// Generalizes names the cards that this one was drawn from: they say the
	// same about different places. They stay what they are.
	Generalizes []string `json:"generalizes,omitempty"`
	Tags        []string `json:"tags,omitempty"`

	// The body's bullets in file order, each as markdown without its label.
	Issue      []string `json:"issue"`
	Solution   []string `json:"solution"`
	Constraint []string `json:"constraint,omitempty"`

	origin *origin // nil for a card that was not parsed
}

// origin is what a parsed card was read from. Stores keep many cards, so it is
// the text alone; what an edit needs beside it is read from it again.
type origin struct {
	src string
	id  string // the card had when it was read
}

// parsed is a card's text taken apart.
type parsed struct {
	front frontMatter
	body  []byte // the part of the text after the front matter
	items []bulletItem
	was   Card // the fields as they were read
}

// Error says what is wrong with a card, where, and what to do about it.
type Error struct {
	Line int    // in the file, from 1; 0 when no single line is to blame
	What string // what is wrong and the remedy, one line
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

func Errorf(line int, format string, args ...any) *Error {
	return &Error{Line: line, What: OneLine(fmt.Sprintf(format, args...))}
}

// Parse reads a card's text form. Every error is a *[Error]. The
// bytes are not kept: src may be reused.
//
// The id may be absent (a card written by hand); everything that needs one
// says so. An absent state is draft.
func Parse(src []byte) (*Card, error) {
	if len(src) > MaxBytes {
		return nil, Errorf(0, "the card has %d bytes, at most %d are allowed; split it", len(src), MaxBytes)
	}
	if i := invalidUTF8(src); i >= 0 {
		return nil, Errorf(1+bytes.Count(src[:i], []byte("\n")), "not UTF-8 at byte %d; save the file as UTF-8", i)
	}
	p, err := parse(src)
	if err != nil {
		return nil, err
	}
	c := p.was
	c.origin = &origin{src: string(src)}
	c.origin.id = c.ID
	return &c, nil
}

// parse splits a text into its parts, which share src's memory.
func parse(src []byte) (*parsed, error) {
	var p parsed
	var err error
	if p.front, p.body, err = splitFrontMatter(src); err != nil {
		return nil, err
	}
	c := &p.was
	if err := p.front.decode(c); err != nil {
		return nil, err
	}
	if p.items, err = parseBody(p.body, p.front.bodyLine); err != nil {
		return nil, err
	}
	for _, it := range p.items {
		switch it.kind {
		case issueBullet:
			c.Issue = append(c.Issue, it.text)
		case solutionBullet:
			c.Solution = append(c.Solution, it.text)
		case constraintBullet:
			c.Constraint = append(c.Constraint, it.text)
		}
	}
	return &p, nil
}

func invalidUTF8(src []byte) int {
	for i, r := range string(src) {
		if r == utf8.RuneError && !bytes.HasPrefix(src[i:], []byte("\ufffd")) {
			return i
		}
	}
	return -1
}

// Clone returns an independent copy with the same origin.
func (c *Card) Clone() *Card {
	f := *c // origin is never changed after parsing
	cloneFields(f.keys())
	for _, k := range bulletKinds() {
		*k.list(&f) = slices.Clone(*k.list(c))
	}
	return &f
}

func cloneFields(keys []keyed) {
	for _, k := range keys {
		switch v := k.field.(type) {
		case []keyed:
			cloneFields(v)
		case *[]string:
			*v = slices.Clone(*v)
		case *[]Range:
			*v = slices.Clone(*v)
		case **time.Time:
			if *v != nil {
				*v = new(**v)
			}
		}
	}
}

// Source returns a copy of the bytes the card was parsed from; nil for one that
// was not parsed.
func (c *Card) Source() []byte {
	if c.origin == nil {
		return nil
	}
	return []byte(c.origin.src)
}

// ParsedID returns the id the card had when it was parsed; "" where it was not.
func (c *Card) ParsedID() string {
	if c.origin == nil {
		return ""
	}
	return c.origin.id
}

// Expired reports whether the card's date of expiry has passed.
func (c *Card) Expired(now time.Time) bool { return c.Expires != nil && now.After(*c.Expires) }

// Markdown returns the card's text form. For a parsed card whose fields are
// unchanged it is byte for byte what was parsed. Of an edited one, unknown keys,
// comments and prose stay, and where no field of the front matter was edited all of that does.
func (c *Card) Markdown() []byte {
	if c.origin == nil {
		return c.render()
	}
	p, err := parse([]byte(c.origin.src))
	if err != nil {
		panic(fmt.Sprintf("card %s: its text could be read before: %v", c.ID, err))
	}
	front, changed := p.front.edited(&p.was, c)
	body, bodyChanged := editBody(p, c)
	if !changed && !bodyChanged {
		return c.Source()
	}
	return slices.Concat(front, body)
}

// Body returns the text form's markdown after the front matter.
func (c *Card) Body() []byte {
	src := c.Markdown()
	_, body, err := splitFrontMatter(src)
	if err != nil {
		return src // not reached for a card that was parsed or is valid
	}
	return body
}

// render writes the canonical text form.
func (c *Card) render() []byte {
	var b bytes.Buffer
	b.WriteString("---\n")
	for _, k := range c.keys() {
		b.WriteString(renderEntry(c, k.key))
	}
	b.WriteString("---\n\n")
	for _, k := range bulletKinds() {
		for _, text := range *k.list(c) {
			b.WriteString(renderBullet(k, text, "-", "\n"))
		}
	}
	return b.Bytes()
}

// Hash identifies the lesson: SHA-256, in hex, of the topic, scope and
// bullets. State, dates, tags, provenance and layout do not enter, so a review keeps
// the hash and a change of what the card says does not.
func (c *Card) Hash() string {
	h := sha256.New()
	io.WriteString(h, "anamnesis card 1\n")
	hashParts(h, c.Topic, c.Scope.Repo, c.Scope.Language, c.Scope.Tool, c.Scope.Version)
	for _, k := range bulletKinds() {
		list := *k.list(c)
		hashParts(h, fmt.Sprint(len(list)))
		for _, text := range list {
			hashParts(h, cleanBullet(text))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hashParts feeds each part with its length before it, so that no two lists
// of parts are the same bytes.
func hashParts(w io.Writer, parts ...string) {
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		w.Write(n[:])
		io.WriteString(w, p)
	}
}

// NewID derives an id from parts: 16 lower-case letters and digits, the same
// for the same parts, so that doing something twice writes one card. ("ab",
// "c") and ("a", "bc") differ.
func NewID(parts ...string) string {
	h := sha256.New()
	hashParts(h, parts...)
	return strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)[:10]))
}

const idRemedy = "use 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit"

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func validID(id string) bool { return len(id) <= 64 && idPattern.MatchString(id) }

// Validate reports the first thing that keeps the card from being stored, as
// a *[Error].
func (c *Card) Validate() error {
	switch {
	case !validID(c.ID):
		return Errorf(0, "id %q is not a card id; %s", c.ID, idRemedy)
	case c.State != "" && !c.State.Valid():
		return Errorf(0, "state %q is unknown; use draft, reviewed, retired or superseded", c.State)
	}
	if err := checkTopic(c.Topic, 0); err != nil {
		return err
	}
	for _, f := range [][2]string{{"source_task", c.SourceTask},
		{"scope", c.Scope.Repo + c.Scope.Language + c.Scope.Tool + c.Scope.Version},
		{"provenance", c.Provenance.Task + c.Provenance.Model + c.Provenance.EvidenceHash}} {
		if hasControl(f[1]) {
			return Errorf(0, "%s holds a line break or control character; write it on one line", f[0])
		}
	}
	if err := c.validateLists(); err != nil {
		return err
	}
	return c.checkReadsBack()
}

// checkReadsBack reports a card whose text form says something else than its
// fields, so that nothing unreadable is ever stored.
func (c *Card) checkReadsBack() error {
	back, err := Parse(c.Markdown())
	if err != nil {
		return err
	}
	for _, k := range c.keys() {
		if renderEntry(c, k.key) != renderEntry(back, k.key) {
			return Errorf(0, "%s cannot be written so that it reads the same; simplify it", k.key)
		}
	}
	for _, k := range bulletKinds() {
		if !slices.EqualFunc(*k.list(c), *k.list(back), func(a, b string) bool { return cleanBullet(a) == b }) {
			return Errorf(0, "the **%s** bullets would read otherwise when written; simplify their markdown", k.label)
		}
	}
	return nil
}

func (c *Card) validateLists() error {
	for _, k := range []keyed{{"tags", c.Tags}, {"supersedes", c.Supersedes}, {"contradicts", c.Contradicts},
		{"generalizes", c.Generalizes}, {"provenance.shown", c.Provenance.Shown}} {
		if err := checkList(k.key, k.field.([]string), 0); err != nil {
			return err
		}
	}
	if len(c.Provenance.Ranges) > MaxListItems {
		return Errorf(0, "provenance.ranges has %d entries, at most %d are allowed", len(c.Provenance.Ranges),
			MaxListItems)
	}
	n := 0
	for _, k := range bulletKinds() {
		for _, text := range *k.list(c) {
			n++
			if cleanBullet(text) == "" {
				return Errorf(0, "an empty **%s** bullet; write its text or leave it out", k.label)
			}
		}
	}
	if n == 0 {
		return Errorf(0, "the card says nothing; add at least one bullet '- **Issue**: …'")
	}
	if n > MaxBullets {
		return Errorf(0, "the card has %d bullets, at most %d are allowed; split it", n, MaxBullets)
	}
	return nil
}

func checkTopic(topic string, line int) error {
	switch {
	case strings.TrimSpace(topic) == "":
		return Errorf(line, "topic is empty; say in one line what the card is about")
	case hasControl(topic):
		return Errorf(line, "topic holds a line break or control character; write it on one line")
	case utf8.RuneCountInString(topic) > MaxTopicRunes:
		return Errorf(line, "topic has %d characters, at most %d are allowed; move the detail to the bullets",
			utf8.RuneCountInString(topic), MaxTopicRunes)
	}
	return nil
}

func checkList(name string, list []string, line int) error {
	if len(list) > MaxListItems {
		return Errorf(line, "%s has %d entries, at most %d are allowed", name, len(list), MaxListItems)
	}
	for _, s := range list {
		if hasControl(s) || strings.TrimSpace(s) == "" {
			return Errorf(line, "%s has an empty entry or one with a line break: %q", name, s)
		}
	}
	return nil
}

func hasControl(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
	})
}

// OneLine makes text fit for one line of output: line breaks and control
// characters become spaces.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}
