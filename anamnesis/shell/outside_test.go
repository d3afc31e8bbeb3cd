package shell

import "testing"

// TestShowsOutside: a command that had a network may show text of others, unless it is known to stay
// in the world. One without shows it only where it names a file there.
func TestShowsOutside(t *testing.T) {
	for command, want := range map[string]struct{ network, isolated bool }{
		"ls":                           {false, false},
		"cat /w/a b":                   {false, false},
		"curl https://example.org":     {true, false},
		"sh x.sh":                      {false, false},
		"cat /home/me/x":               {true, true},
		"cat /w-other/x":               {true, true},
		"cat ~/x":                      {true, true},
		"cat ../x":                     {true, true},
		`sh x.sh "$HOME/x"`:            {true, true},
		"sh x.sh ${HOME}":              {true, true},
		"sh x.sh /tmp/log":             {true, false},
		"sh x.sh /usr/../home/me":      {true, true},
		"/usr/bin/env sh x.sh >/w/out": {false, false},
	} {
		if got := ShowsOutside(command, "/w", false); got != want.network {
			t.Errorf("%s: %v", command, got)
		}
		if got := ShowsOutside(command, "/w", true); got != want.isolated {
			t.Errorf("%s, isolated: %v", command, got)
		}
	}
}

// TestOutside: a path leads out of a directory by its text.
func TestOutside(t *testing.T) {
	for p, want := range map[string]bool{
		"a": false, "a/../b": false, "..a": false, "..": true, "a/../..": true, "../w": true, "~": true, "~/w": true,
		"/w": false, "/w/": false, "/w/a": false, "/w/../w/a": false, "/wa": true, "/": true, "/w/..": true,
	} {
		if got := Outside(p, "/w"); got != want {
			t.Errorf("%s: %v", p, got)
		}
	}
	if !Outside("/w", "") || Outside("/a", "/") || Outside("/w/a", "/w/") {
		t.Error("a world without a name, the whole disk or a slash at the end is misread")
	}
}
