package markup

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"anamnesis/cmd/internal/term"
)

// allowed are the elements that a card can produce, with their attributes.
func allowed() map[string][]string {
	out := map[string][]string{"a": {"href", "rel"}, "ol": {"start"}, "pre": {"class"}, "span": {"class"}}
	for plain := range strings.FieldsSeq("html head body p ul li blockquote code em strong ins del hr br h3 h4 h5 h6") {
		out[plain] = nil
	}
	return out
}

// inertFault returns what is not inert in rendered HTML.
func inertFault(t interface {
	Helper()
	Errorf(string, ...any)
}, src string) {
	t.Helper()
	out, _ := Render([]byte(src))
	if string(out) != term.Clean(string(out)) {
		t.Errorf("%q: a character that acts is left in %q", src, out)
	}
	doc, err := html.Parse(strings.NewReader(string(out)))
	if err != nil {
		t.Errorf("%q: %v", src, err)
		return
	}
	elements := allowed()
	for n := range doc.Descendants() {
		if n.Type == html.CommentNode {
			t.Errorf("%q: a comment in %q", src, out)
		}
		if n.Type != html.ElementNode {
			continue
		}
		attributes, known := elements[n.Data]
		if !known {
			t.Errorf("%q: <%s> in %q", src, n.Data, out)
		}
		for _, a := range n.Attr {
			if !strings.Contains(" "+strings.Join(attributes, " ")+" ", " "+a.Key+" ") {
				t.Errorf("%q: %s of <%s> in %q", src, a.Key, n.Data, out)
			}
			if a.Key == "href" && !strings.HasPrefix(a.Val, "http://") && !strings.HasPrefix(a.Val, "https://") {
				t.Errorf("%q: a link to %q in %q", src, a.Val, out)
			}
		}
	}
}

// hostile are texts that try to act in a browser.
func hostile() []string {
	return []string{
		"<script>alert(1)</script>",
		"<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
		"text <img src=x onerror=alert(1)> text",
		"<svg onload=alert(1)><script>alert(1)</script></svg>",
		"<!-- --><iframe src=\"javascript:alert(1)\"></iframe>",
		"<style>*{background:url(//evil.example)}</style>",
		"<meta http-equiv=refresh content=\"0;url=//evil.example\">\n\n<base href=//evil.example>",
		"<form action=/undo method=post><button>x</button></form>",
		"<div hx-get=/undo hx-trigger=load data-key=a></div>",
		"[x](javascript:alert(1)) [x](JaVaScRiPt:alert`1`) [x](java\nscript:alert(1)) [x](&#106;avascript:alert(1))",
		"[x](data:text/html,<script>alert(1)</script>) [x](vbscript:x) [x](file:///etc/passwd) [x](/undo) [x](//evil.example)",
		"[x](https://good.example@evil.example/) [x](http:evil)",
		"![x](https://evil.example/x.png) ![x](data:image/svg+xml;base64,AAAA) ![a <b> ![c](d)](e \"onload=x\")",
		"[![x](https://evil.example/x.png)](https://evil.example)",
		"<javascript:alert(1)> <https://good.example/\"onmouseover=alert(1)> <me@evil.example>",
		"[ref]\n\n[ref]: javascript:alert(1) \"title\"",
		"[x](https://good.example \"\\\" onclick=alert(1)\")",
		"```<script>\nalert(1)\n```\n\n~~~ \"onclick=alert(1)\n~~~",
		"```diff\n+<script>alert(1)</script>\n@@ \" onclick=alert(1)\n-\u202ex\n```",
		"&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62;",
		"pay \u202ekcab\u202c &#x202e;kcab &#8238; \x1b[31mred \x07 \u200bzero \ufeff",
		"# <img src=x>\n\n> <details ontoggle=alert(1) open>\n\n- <b>x",
		"<![CDATA[<script>alert(1)</script>]]> <?php alert(1) ?> <!DOCTYPE x>",
		"<a href='https://evil.example'>click</a>",
	}
}

func TestMarkdownIsInert(t *testing.T) {
	for _, src := range hostile() {
		inertFault(t, src)
		inertFault(t, "- **Issue**: "+strings.ReplaceAll(src, "\n", "\n  "))
	}
}

func FuzzMarkdownIsInert(f *testing.F) {
	for _, src := range hostile() {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) { inertFault(t, src) })
}

func TestMarkdown(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"- **Issue**: use `go test`", "<ul>\n<li><strong>Issue</strong> use <code>go test</code></li>\n</ul>\n"},
		{"- **Solution**: run\n  go vet\n  go test", "<ul>\n<li><strong>Solution</strong> run<br>\ngo vet<br>\ngo test</li>\n</ul>\n"},
		{"- **Solution**: a ⏎ <b>", "<ul>\n<li><strong>Solution</strong> a<br>&lt;b&gt;</li>\n</ul>\n"},
		{"- **Solution**: a\n- **Solution**: b\n- **Constraint**: c", "<ul>\n<li><strong>Solution</strong> a</li>\n<li>b</li>\n<li><strong>Constraint</strong> c</li>\n</ul>\n"}, // one heading a label
		{"# One", "<h3>One</h3>\n"},
		{"[docs](https://example.com/a?b=1&c=2)", `<p><a href="https://example.com/a?b=1&amp;c=2" rel="noreferrer noopener nofollow">docs</a> (https://example.com/a?b=1&amp;c=2)</p>` + "\n"},
		{"[docs](javascript:x)", "<p>docs (javascript:x)</p>\n"},
		{"<https://example.com>", `<p><a href="https://example.com" rel="noreferrer noopener nofollow">https://example.com</a></p>` + "\n"},
		{"![a cat](https://example.com/c.png)", "<p>[image: a cat – not loaded: https://example.com/c.png]</p>\n"},
		{"a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"},
		{"<div>\nx\n</div>", "<pre>&lt;div&gt;\nx\n&lt;/div&gt;</pre>\n"},
		{"```go\na < b\n```", "<pre><code>a &lt; b\n</code></pre>\n"},
		{"```diff\n-a\n+<b>\n c\n@@ -9 +9 @@\n--- d\n```", `<pre class="diff"><del>-a</del><ins>+&lt;b&gt;</ins><span> c</span><span class="at">@@ -9 +9 @@</span><del>--- d</del></pre>` + "\n"},
		{"x &#x202e; y", "<p>x \\u202e y</p>\n"},
	} {
		if got, ok := Render([]byte(tt.src)); !ok || string(got) != tt.want {
			t.Errorf("%q:\n%s\nwant\n%s", tt.src, got, tt.want)
		}
	}
	long := strings.Repeat("<b>", MaxBytes)
	if out, ok := Render([]byte(long)); ok || !strings.HasPrefix(string(out), "<pre>&lt;b&gt;") {
		t.Errorf("a text over the limit: %.60s", out)
	}
}
