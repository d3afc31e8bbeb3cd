// Package markup renders untrusted markdown as HTML.
package markup

import (
	"bytes"
	"html"
	"html/template"
	"net/url"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"anamnesis/cmd/internal/page/patch"
	"anamnesis/cmd/internal/term"
)

// MaxBytes is how much text is rendered. Inline markdown can take quadratic time on hostile
// text, so a longer one is quoted.
const MaxBytes = 32 << 10

// label matches the label of a card's bullet. It is shown as a heading, without its colon,
// once above consecutive bullets of that label.
var label = regexp.MustCompile(`(<li>(?:\s*<p>)?)(<strong>[^<]*</strong>):( ?)`)

// headingShift is added to the level of a card's headings, below the page's own.
const headingShift = 2

// Render renders untrusted markdown. The result loads, runs and sends nothing: HTML is shown
// as text, an image as its description and address, and only http and https addresses are
// links, with the address beside them. Line breaks are kept. If the text is longer than
// MaxBytes, it is quoted and rendered is false.
func Render(src []byte) (out template.HTML, rendered bool) {
	var b bytes.Buffer
	if len(src) <= MaxBytes {
		md := goldmark.New(goldmark.WithRendererOptions(gmhtml.WithHardWraps(),
			renderer.WithNodeRenderers(util.Prioritized(inert{}, 1))))
		if err := md.Convert(src, &b); err == nil {
			// term.Clean comes last: an entity may have become a character that reverses text.
			last := ""
			text := label.ReplaceAllStringFunc(term.Clean(b.String()), func(found string) string {
				m := label.FindStringSubmatch(found)
				if m[2] == last {
					return m[1]
				}
				last = m[2]
				return m[1] + m[2] + m[3]
			})
			return template.HTML(strings.ReplaceAll(text, " ⏎ ", "<br>")), true // stands for a line break in a bullet
		}
		b.Reset()
	}
	b.WriteString("<pre>" + html.EscapeString(string(src)) + "</pre>")
	return template.HTML(term.Clean(b.String())), false
}

// inert renders as text what goldmark would render as active HTML.
type inert struct{}

// RegisterFuncs is goldmark's interface.
func (inert) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, quoteBlock)
	r.Register(ast.KindRawHTML, quoteInline)
	r.Register(ast.KindImage, quoteImage)
	r.Register(ast.KindLink, link)
	r.Register(ast.KindAutoLink, autoLink)
	r.Register(ast.KindHeading, heading)
	r.Register(ast.KindFencedCodeBlock, fenced)
}

// fenced renders a block of code, with the lines of a diff as on the rest of the page.
func fenced(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	text := string(n.Lines().Value(src))
	if name := string(n.(*ast.FencedCodeBlock).Language(src)); name != "diff" && name != "patch" {
		_, err := w.WriteString("<pre><code>" + html.EscapeString(text) + "</code></pre>\n")
		return ast.WalkSkipChildren, err
	}
	_, err := w.WriteString(`<pre class="diff">` + string(patch.Read(text).HTML()) + "</pre>\n")
	return ast.WalkSkipChildren, err
}

func quoteBlock(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	text := n.Lines().Value(src)
	if closing := n.(*ast.HTMLBlock).ClosureLine; !closing.IsEmpty() {
		text = append(text, closing.Value(src)...)
	}
	_, err := w.WriteString("<pre>" + html.EscapeString(string(text)) + "</pre>\n")
	return ast.WalkSkipChildren, err
}

func quoteInline(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, err := w.WriteString(html.EscapeString(string(n.(*ast.RawHTML).Segments.Value(src))))
	return ast.WalkSkipChildren, err
}

// quoteImage renders an image's description and its address.
func quoteImage(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	text := "[image: "
	if !entering {
		text = " – not loaded: " + html.EscapeString(string(n.(*ast.Image).Destination)) + "]"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err
}

func autoLink(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	a := n.(*ast.AutoLink)
	text := html.EscapeString(string(a.Label(src)))
	to, ok := external(string(a.URL(src)))
	if ok && a.AutoLinkType == ast.AutoLinkURL {
		text = openAnchor(to) + text + "</a>"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err
}

// link writes the tags of a link around its text. If the address may not be a link, it
// follows the text.
func link(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	dest := string(n.(*ast.Link).Destination)
	to, ok := external(dest)
	text := ""
	switch {
	case entering && ok:
		text = openAnchor(to)
	case entering:
	case ok:
		text = "</a> (" + html.EscapeString(to) + ")"
	default:
		text = " (" + html.EscapeString(dest) + ")"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err
}

func openAnchor(to string) string {
	return `<a href="` + html.EscapeString(to) + `" rel="noreferrer noopener nofollow">`
}

// external returns an address if a link may have it: a complete http or https URL.
func external(dest string) (string, bool) {
	u, err := url.Parse(strings.TrimSpace(dest))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", false
	}
	return u.String(), true
}

func heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	level := string(rune('0' + min(n.(*ast.Heading).Level+headingShift, 6)))
	text := "<h" + level + ">"
	if !entering {
		text = "</h" + level + ">\n"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err
}
