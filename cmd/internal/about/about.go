// Package about says which build of the program this is.
package about

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Build is what is known of the program's build.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"` // empty: it was not built in a repository
	Time     string `json:"time,omitempty"`   // of the commit
	Modified bool   `json:"modified"`         // the files differed from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func Read(version string) Build {
	b := Build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the build on two or three lines.
func (b Build) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "anamnesis %s\n", b.Version)
	if b.Commit != "" {
		changed := ""
		if b.Modified {
			changed = ", with changes"
		}
		fmt.Fprintf(&out, "commit %s of %s%s\n", b.Commit, b.Time, changed)
	}
	fmt.Fprintf(&out, "built with %s for %s\n", b.Go, b.Platform)
	return out.String()
}
