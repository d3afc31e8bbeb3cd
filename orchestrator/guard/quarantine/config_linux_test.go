package quarantine

import (
	"os"
	"slices"
	"testing"
)

func TestInertConfig(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"/w/x/.git", "/own"} {
		if err := os.MkdirAll(base+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../own", base+"/w/l"); err != nil {
		t.Fatal(err)
	}
	place := configPlace{dir: base + "/w/x/.git", world: base + "/w", own: []string{base + "/own"},
		trusted: configLines("[alias]\n\tmine = !y\n[core]\n\tworktree = ../../../own\n"),
		led:     configLeads("[core]\n\tworktree = ..\n", base+"/w/x/.git")}
	for _, row := range []struct{ text, kept string }{
		{"[core]\n\tbare = false\n\tfsmonitor = x\n", "[core]\n\tbare = false\n"},
		{"[core]\n\tworktree = ../../x\n", "[core]\n\tworktree = ../../x\n"},
		{"[core]\n\tworktree = /home\n", "[core]\n"},
		{"[core]\n\tworktree = ../../absent\n", "[core]\n"},
		{"[core]\n\tworktree = \"/\"home\n", "[core]\n"},
		{"[core]\n\tworktree = .. # x\n", "[core]\n"},
		{"[core]\n\tworktree = ../../../own\n", "[core]\n"}, // trusted, but it led elsewhere
		{"[remote \"o\"]\n\turl = e\"xt\"::x\n\turl = \"ext::x\"\n\turl = ../../own/r\n\turl = ../l/r\n\turl = file:///%2e%2e" + base + "/own/r\n\turl = ../other\n", "[remote \"o\"]\n\turl = ../other\n"},
		{"[branch \"o\"]\n\tremote = " + base + "/own/r\n\tdescription = \"a;\"\n", "[branch \"o\"]\n\tdescription = \"a;\"\n"},
		{"[remote \"o\"]\n\turl = https://h/r\n\tfetch = +refs/*:refs/*\n\tuploadpack = x\n", "[remote \"o\"]\n\turl = https://h/r\n\tfetch = +refs/*:refs/*\n"},
		{"[remote \"o\"]\n\turl = ext::sh -c x\n", "[remote \"o\"]\n"},
		{"[submodule \"s\"]\n\tupdate = !x\n\turl = ../u\n", "[submodule \"s\"]\n\turl = ../u\n"},
		{"[submodule \"s\"]\n\tupdate = rebase\n", "[submodule \"s\"]\n\tupdate = rebase\n"},
		{"[diff \"x\"]\n\ttextconv = x\n[alias]\n\tx = !x\n[include]\n\tpath = x\n", "[diff \"x\"]\n[alias]\n[include]\n"},
		{"[CORE]\n\tFSMonitor = x\n\tBare\n", "[CORE]\n\tBare\n"},
		{"[user]\n\tname = a \\\n\temail = b\n", "[user]\n\temail = b\n"},
		{"[core] fsmonitor = x\n\tbare = true\n[user]\n\tname = a\n", "[user]\n\tname = a\n"},
		{"[core.x]\n\tbare = true\n", ""},
		{"[alias]\n\tmine = !y\n\tother = !y\n", "[alias]\n\tmine = !y\n"},
		{"# a comment\n; another\n\n", "# a comment\n; another\n\n"},
	} {
		kept, dropped := place.inert(row.text)
		if kept != row.kept || (len(dropped) > 0) != (kept != row.text) {
			t.Errorf("%q: kept %q, dropped %q; want %q", row.text, kept, dropped, row.kept)
		}
	}
}

// TestSettings: a configuration is read as git reads it; what git refuses ends a line, not the file.
func TestSettings(t *testing.T) {
	text := "\uFEFF[Core]\n\tfsMonitor = \"a b\" # c\n\tx-9 = 1\n\t? = 2\n[a.b] k\n[remote \"o\\\"p\"]url=x;y\n[broken\nlast\n\tk = \\\n \"a \" b\\n\\\n c \n"
	want := []setting{{"Core", "", "fsMonitor", "a b"}, {"Core", "", "x-9", "1"}, {"a", "b", "k", ""},
		{"remote", `o"p`, "url", "x"}, {"remote", `o"p`, "last", ""}, {"remote", `o"p`, "k", "a  b\n c"}}
	if got := settings(text); !slices.Equal(got, want) {
		t.Errorf("settings = %q, want %q", got, want)
	}
}
