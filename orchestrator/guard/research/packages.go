package research

import (
	"strings"

	"anamnesis/anamnesis/shell"
)

// manager describes how a package manager takes the packages to install. Lists are separated by blanks.
type manager struct {
	programs string
	name     string // the kind of package: npm, pip, go, cargo, apt …
	subs     string // its subcommands that install their arguments; empty: the program itself does
	look     string // a command that looks a package up, with % for its name
	valued   string // options that take the next word
	// listed are options whose value is a file of packages, or which make the words not
	// packages: packages that the world lists are not new.
	listed string
	with   string // only the value of this option is a package
	single bool   // only the first word is a package, the rest belongs to it
}

const (
	npmLook   = "npm view %"
	npmValued = "--prefix -C --dir --registry --tag -w --workspace --filter --loglevel --cache --userconfig --omit " +
		"--include --cwd"
	pipLook   = "pip index versions %"
	pipValued = "--proxy --timeout --retries --log --cert --cache-dir --exists-action --trusted-host -t --target -i " +
		"--index-url --extra-index-url -f --find-links -c --constraint --python --prefix --root --group --extra"
	uvValued  = pipValued + " -p --from --with --index --default-index"
	pipListed = "-r --requirement --requirements -e --editable"
	goLook    = "go list -m -versions %"
	goValued  = "-tags -C -mod -modfile -exec"
	gemLook   = "gem info -r %"
)

func managers() []manager {
	return []manager{
		{programs: "npm pnpm bun", name: "npm", subs: "install i add in isntall a", valued: npmValued, look: npmLook},
		{programs: "npm pnpm bun", name: "npm", subs: "exec x dlx create init", valued: "-p --package " + npmValued,
			single: true, look: npmLook},
		{programs: "yarn", name: "npm", subs: "add", valued: npmValued, look: npmLook},
		{programs: "yarn", name: "npm", subs: "dlx create", single: true, look: npmLook},
		{programs: "npx bunx", name: "npm", valued: "-p --package", single: true, look: npmLook},
		{programs: "pip pip3 pipx", name: "pip", subs: "install inject run download wheel", valued: pipValued,
			listed: pipListed, look: pipLook},
		{programs: "uv", name: "pip", subs: "add pip", valued: pipValued, listed: pipListed, look: pipLook},
		{programs: "uv", name: "pip", subs: "tool", valued: uvValued, single: true, look: pipLook},
		{programs: "uv", name: "pip", subs: "run", with: "--with", look: pipLook},
		{programs: "uvx", name: "pip", valued: uvValued, single: true, look: pipLook},
		{programs: "poetry pdm", name: "pip", subs: "add", valued: "-G --group --source", look: pipLook},
		{programs: "go", name: "go", subs: "get install", valued: goValued, look: goLook},
		{programs: "go", name: "go", subs: "run", valued: goValued, single: true, look: goLook},
		{programs: "cargo", name: "cargo", subs: "add install", look: "cargo info %",
			valued: "--features -F --version --vers --git --branch --tag --rev --path -p --package --root --registry"},
		{programs: "apt apt-get aptitude", name: "apt", subs: "install", valued: "-o -t --target-release -c",
			look: "apt-cache show %"},
		{programs: "apk", name: "apk", subs: "add", valued: "-t --virtual -X --repository", look: "apk info %"},
		{programs: "dnf yum zypper", name: "rpm", subs: "install in", look: "dnf info %"},
		{programs: "pacman", name: "pacman", subs: "-S -Sy -Syu", look: "pacman -Si %"},
		{programs: "brew", name: "brew", subs: "install", look: "brew info %"},
		{programs: "gem", name: "gem", subs: "install", valued: "-v --version -s --source", look: gemLook},
		{programs: "bundle", name: "gem", subs: "add", valued: "-v --version -g --group", look: gemLook},
		{programs: "composer", name: "composer", subs: "require", look: "composer show -a %"},
		{programs: "conda mamba micromamba", name: "conda", subs: "install",
			valued: "-n --name -p --prefix -c --channel", listed: "-f --file", look: "conda search %"},
	}
}

// packages finds what a command installs by name. Packages that the world's files list (npm
// ci, pip install -r) or that are in the world (pip install .) are not new.
func (f *finder) packages(s shell.Simple) {
	program, args := installer(s)
	for _, m := range managers() {
		rest, ok := m.after(args)
		if !ok || !shell.InList(m.programs, program) {
			continue
		}
		for _, w := range m.words(rest) {
			name := m.packageName(w)
			known := name == "" || m.single && f.rules.Listed != nil && f.rules.Listed(m.name, name)
			if !known {
				f.add(Subject{Kind: Package, ID: m.name + ":" + name, Look: strings.ReplaceAll(m.look, "%", name)})
			}
		}
	}
}

// python matches the interpreter, and pip, of any version.
var python = shell.Pattern(`^(python|pip)[0-9]*(?:\.[0-9]+)*$`)

// installer returns the program that a command installs with and its words: for python -m pip
// it is pip. It removes a choice of toolchain or directory before the subcommand.
func installer(s shell.Simple) (string, []shell.Word) {
	program, args := s.Program(), s.Args()
	m := python().FindStringSubmatch(program)
	switch {
	case m != nil && m[1] == "pip":
		return "pip", args
	case m != nil:
		for i := 0; i+1 < len(args) && strings.HasPrefix(args[i].Text, "-"); i++ {
			switch w := args[i].Text; {
			case w == "-W" || w == "-X":
				i++
			case !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "m") && args[i+1].Text == "pip":
				return "pip", args[i+2:]
			}
		}
	case program == "cargo" && len(args) > 0 && strings.HasPrefix(args[0].Text, "+"):
		return program, args[1:]
	case program == "yarn" && len(args) > 1 && args[0].Text == "global":
		return program, args[1:]
	case program == "yarn" && len(args) > 2 && args[0].Text == "workspace":
		return program, args[2:]
	}
	return program, args
}

// after returns the words after the subcommand that installs.
func (m manager) after(args []shell.Word) ([]shell.Word, bool) {
	if m.subs == "" {
		return args, true
	}
	i := 0
	for i < len(args) && strings.HasPrefix(args[i].Text, "-") && !shell.InList(m.subs, args[i].Text) {
		if shell.InList(m.valued, args[i].Text) {
			i++
		}
		i++
	}
	if i >= len(args) || !shell.InList(m.subs, args[i].Text) {
		return nil, false
	}
	rest := args[i+1:]
	if sub := args[i].Text; sub == "pip" || sub == "tool" { // uv pip install, uv tool run
		if len(rest) == 0 || !shell.InList("install run", rest[0].Text) {
			return nil, false
		}
		rest = rest[1:]
	}
	return rest, true
}

func (m manager) words(args []shell.Word) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		w := args[i].Text
		switch {
		case m.with != "":
			if value, ok := strings.CutPrefix(w, m.with+"="); ok {
				out = append(out, value)
			} else if w == m.with && i+1 < len(args) {
				i++
				out = append(out, args[i].Text)
			}
		case w == "--":
		case shell.InList(m.listed, w), shell.InList(m.valued, w):
			// npx -p PACKAGE command, uvx --from PACKAGE command; uv's -p names a Python
			if i++; m.single && (shell.InList("--package --from", w) || w == "-p" && m.name == "npm") && i < len(args) {
				return []string{args[i].Text}
			}
		case strings.HasPrefix(w, "-"):
		default:
			if out = append(out, w); m.single {
				return out
			}
		}
	}
	return out
}

// packageName returns a word's package without its version; empty if the word names something
// of the world.
func (m manager) packageName(w string) string {
	if w == "" || strings.IndexAny(w, "./~") == 0 || strings.HasPrefix(w, "file:") {
		return ""
	}
	if strings.Contains(w, "://") {
		return w // an address: its host is also a subject
	}
	if m.name != "go" && archive().MatchString(w) {
		return "" // a file, even if it does not exist yet
	}
	switch m.name {
	case "pip":
		if i := strings.IndexAny(w, "=<>!~[;@"); i > 0 {
			w = strings.TrimSpace(w[:i])
		}
		return strings.ReplaceAll(strings.ToLower(w), "_", "-")
	case "apt", "apk", "conda":
		w, _, _ = strings.Cut(w, "=")
	case "go":
		if !strings.Contains(strings.Split(w, "/")[0], ".") {
			return "" // of the standard library, or a pattern of the module itself
		}
		if m.single && !strings.Contains(w, "@") {
			return "" // go run without a version: what go.mod lists, or a file
		}
		w, _, _ = strings.Cut(strings.TrimSuffix(w, "/..."), "@")
	case "composer":
		w, _, _ = strings.Cut(w, ":")
	default:
		if i := strings.LastIndexByte(w, '@'); i > 0 { // @scope/name begins with one
			w = w[:i]
		}
	}
	return w
}

// archive matches a package file.
var archive = shell.Pattern(`\.(?:whl|tgz|tar\.(?:gz|bz2|xz)|zip|deb|rpm|apk|gem|conda)$`)
