package file

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/picture"
	"anamnesis/orchestrator/tool"
)

// ReadFile is the tool that shows a text file's lines with their numbers, or an image. allowSecrets are
// doublestar patterns over paths relative to the world: files that look like secrets and may
// be read.
func ReadFile(allowSecrets []string) tool.Tool { return readFile{allowSecrets} }

type readFile struct{ allowSecrets []string }

const maxOffset = 1 << 30

func (readFile) Spec() tool.Spec {
	return tool.Spec{
		Name: "ReadFile",
		Description: fmt.Sprintf("Read a text file or an image (PNG, JPEG, WebP, GIF). Each line of a text is "+
			"prefixed with its number and a tab, as in \"   12\\ttext\"; the prefix is not part of the file. Returns "+
			"at most %d lines, %d KB, and %d characters of a line; the last line of the result says how many lines "+
			"there are and where to continue.",
			MaxLines, MaxBytes>>10, MaxLineRunes),
		Schema: tool.Params(
			tool.Required("path", tool.Text("Path of the file, relative to the working directory.")),
			tool.Optional("line_offset", tool.Int("First line to return, counted from 1; a negative number counts "+
				"from the end (-20: the last 20 lines).", -maxOffset, maxOffset)),
			tool.Optional("n_lines",
				tool.Int(fmt.Sprintf("Number of lines to return, default %d.", MaxLines), 1, maxOffset)),
			tool.Optional("offset", tool.Int("Alias of line_offset.", -maxOffset, maxOffset)),
			tool.Optional("limit", tool.Int("Alias of n_lines.", 1, maxOffset)),
		),
		ReadOnly: true,
	}
}

// window is the requested part.
type window struct {
	first int // line number from 1; negative from the end
	lines int
}

func (r readFile) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Path       string `json:"path"`
		LineOffset *int   `json:"line_offset"`
		NLines     *int   `json:"n_lines"`
		Offset     *int   `json:"offset"`
		Limit      *int   `json:"limit"`
	}](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	first, lines := 1, MaxLines
	w := window{
		first: *cmp.Or(a.LineOffset, a.Offset, &first), lines: min(*cmp.Or(a.NLines, a.Limit, &lines), MaxLines),
	}
	t, err := locate(env, a.Path, tool.MustExist)
	if err != nil {
		return result("ReadFile", err), nil
	}
	defer t.close()
	switch {
	case t.info == nil:
		return result("ReadFile", missing(t.rel)), nil
	case tool.SecretFile(t.rel, r.allowSecrets):
		return result("ReadFile", &tool.PathError{Path: t.rel, Reason: tool.SecretRefusal}), nil
	case t.info.Size() > MaxReadBytes:
		return result("ReadFile", t.errorf("is %d bytes, files over %d are not read; use Grep, or head, tail and sed "+
			"-n through Bash", t.info.Size(), MaxReadBytes)), nil
	}
	f, err := t.open()
	if err != nil {
		return result("ReadFile", err), nil
	}
	defer f.Close()
	secrets := env.Redaction()
	page, err := readPage(ctx, f, w, secrets)
	// An image is binary, too, but many models can see it.
	if err == nil && page.binary != "" && picture.Format(page.head) != "" {
		return readImage(t, f), nil
	}
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("read %s: %w", t.rel, ctx.Err())
	case err != nil:
		return result("ReadFile", t.fault(err)), nil
	}
	if page.binary != "" {
		return result("ReadFile", t.errorf("is a binary file (%s, %d bytes), not text; look at it with file, xxd or "+
			"strings through Bash", page.binary, t.info.Size())), nil
	}
	res := page.result()
	res.Reads, res.Secrets = []string{t.rel}, secrets.Found()
	return res, nil
}

func readImage(t *target, f *os.File) tool.Result {
	_, err := f.Seek(0, io.SeekStart)
	if err != nil {
		return result("ReadFile", t.fault(err))
	}
	data, err := io.ReadAll(io.LimitReader(f, picture.MaxFileBytes+1))
	if err != nil {
		return result("ReadFile", t.fault(err))
	}
	p, description, err := picture.Fit(data)
	if err != nil {
		return result("ReadFile", t.errorf("is an image that cannot be shown: %v (%d bytes)", err, t.info.Size()))
	}
	p.Name = t.rel
	return tool.Result{
		Text:  fmt.Sprintf("[image 1: %s: %s]", t.rel, description),
		Parts: []op.Part{p}, Reads: []string{t.rel}, Display: fmt.Sprintf("image, %dx%d pixels", p.Width, p.Height),
	}
}

// page is the shown part of a file.
type page struct {
	binary  string // kind of a binary file; only head is set with it
	head    []byte // first bytes of a binary file
	total   int    // lines of the file
	first   int    // number of the first line shown
	shown   int    // lines shown
	text    strings.Builder
	long    []int // numbers of shortened lines
	cut     int64 // bytes cut from them
	full    bool  // it ends at the byte limit
	crlf    int   // lines of the page that end in CRLF
	invalid bool  // the page has bytes that are not UTF-8
	noEnd   bool  // the file's last line has no newline
}

// readPage counts the file's lines, then reads the requested ones. Earlier lines are redacted
// with them: a key may begin there.
func readPage(ctx context.Context, f *os.File, w window, secrets *tool.Redaction) (*page, error) {
	p := &page{}
	if err := p.count(ctx, f); err != nil || p.binary != "" {
		return p, err
	}
	if p.first = w.first; w.first < 0 {
		p.first += p.total + 1
	}
	p.first = max(p.first, 1)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return p, err
	}
	r := bufio.NewReaderSize(secrets.Reader(f), 64<<10)
	for number := 1; number <= p.total && p.shown < w.lines && !p.full; number++ {
		if number%4096 == 0 && ctx.Err() != nil {
			return p, ctx.Err()
		}
		line, left, err := readLine(r, number < p.first)
		if err != nil && err != io.EOF {
			return p, err
		}
		if number >= p.first {
			p.add(number, line, left)
		}
	}
	return p, nil
}

// count reads the whole file once for its kind and number of lines.
func (p *page) count(ctx context.Context, f *os.File) error {
	buf := make([]byte, 256<<10)
	var last byte = '\n'
	var size int64
	for ctx.Err() == nil && size <= MaxReadBytes {
		n, err := f.Read(buf)
		if n > 0 {
			if size == 0 {
				if p.binary = binaryKind(buf[:n]); p.binary != "" {
					p.head = buf[:min(n, binaryProbe)]
					return nil
				}
			}
			size += int64(n)
			p.total += bytes.Count(buf[:n], []byte{'\n'})
			last = buf[n-1]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if last != '\n' {
		p.total++
		p.noEnd = true
	}
	return ctx.Err()
}

// readLine reads one line without its newline, in bounded memory: left counts the dropped
// bytes of a very long line. With skip it keeps none.
func readLine(r *bufio.Reader, skip bool) (line []byte, left int64, err error) {
	const most = MaxLineRunes * utf8.UTFMax
	for {
		part, err := r.ReadSlice('\n')
		part = bytes.TrimSuffix(part, []byte{'\n'})
		keep := min(len(part), max(0, most-len(line)))
		if skip {
			keep = 0
		}
		line = append(line, part[:keep]...)
		left += int64(len(part) - keep)
		if err != bufio.ErrBufferFull {
			return line, left, err
		}
	}
}

func (p *page) add(number int, line []byte, left int64) {
	if left == 0 && bytes.HasSuffix(line, []byte{'\r'}) {
		line = line[:len(line)-1]
		p.crlf++
	}
	at := 0
	for n := 0; at < len(line) && n < MaxLineRunes; n++ {
		_, size := utf8.DecodeRune(line[at:])
		at += size
	}
	left += int64(len(line) - at)
	text := string(line[:at])
	if !utf8.ValidString(text) {
		// A character split by the cut is not the file's fault.
		p.invalid = p.invalid || left == 0
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if left > 0 {
		text += fmt.Sprintf(" […%d bytes of this line cut]", left)
	}
	text = fmt.Sprintf("%6d\t%s\n", number, text)
	if p.text.Len()+len(text) > MaxBytes && p.shown > 0 {
		p.full = true
		return
	}
	if left > 0 {
		p.long = append(p.long, number)
		p.cut += left
	}
	p.text.WriteString(text)
	p.shown++
}

// result returns the page with a last line that describes its place in the file.
func (p *page) result() tool.Result {
	next := p.first + p.shown
	more := p.shown > 0 && next <= p.total
	var notes []string
	switch {
	case p.total == 0:
		notes = append(notes, "the file is empty")
	case p.shown == 0:
		notes = append(notes, fmt.Sprintf("there is no line %d", p.first))
	default:
		notes = append(notes, fmt.Sprintf("lines %d-%d", p.first, next-1))
	}
	notes = append(notes, fmt.Sprintf("total_lines: %d", p.total), fmt.Sprintf("has_more: %v", more))
	if more {
		why := ""
		if p.full {
			why = fmt.Sprintf(" (%d KB shown, the most at once)", MaxBytes>>10)
		}
		notes = append(notes, fmt.Sprintf("go on with line_offset %d%s", next, why))
	}
	if len(p.long) > 0 {
		const named = 10
		list := fmt.Sprint(p.long[:min(len(p.long), named)])
		if len(p.long) > named {
			list += " and more"
		}
		notes = append(notes, fmt.Sprintf("lines cut at %d characters: %s", MaxLineRunes, list))
	}
	if p.crlf > 0 {
		notes = append(notes, "lines end in CRLF")
	}
	if p.invalid {
		notes = append(notes, "some bytes are not UTF-8, shown as \uFFFD")
	}
	// Text that is appended to such a file would continue its last line.
	if p.noEnd && !more && p.shown > 0 {
		notes = append(notes, "no newline at the end of the file")
	}
	return tool.Result{
		Text:    p.text.String() + "[" + strings.Join(notes, "; ") + "]",
		Cut:     p.cut,
		Display: fmt.Sprintf("%d of %d lines", p.shown, p.total),
	}
}
