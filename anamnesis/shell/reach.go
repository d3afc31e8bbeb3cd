package shell

import (
	"path"
	"slices"
	"strings"
)

var (
	// reaching matches commands whose effect lies outside the directory: they send, publish, install, or
	// change the machine.
	reaching = Pattern(`^(?:git (?:-\S+ \S+ )*(?:push|send-email|config .*--(?:global|system))\b` +
		`|(?:uv )?(?:pip[\d.]*|pipx|gem|cargo|go|python[\d.]* -m pip) (?:.* )?(?:install|uninstall|publish)\b` +
		`|(?:npm|pnpm|yarn|bun) (?:.* )?(?:publish|link|global|-g|--global)\b` +
		`|(?:apt|apt-get|aptitude|dnf|yum|apk|brew|pacman|zypper|snap|conda|mamba) (?:.* )?` +
		`(?:install|remove|purge|update|upgrade|create|add|del|-S\w*)\b` +
		`|(?:curl|wget) (?:.* )?(?:-X ?(?:POST|PUT|PATCH|DELETE)|--request[ =][^G]|-d|-F|-T|` +
		`--data\S*|--form|--json|--upload-file|--post-\S+|--method=[^G])\b` +
		`|(?:docker|podman|kubectl|helm|terraform|aws|gcloud|gsutil|az|gh|glab|systemctl|service|` +
		`heroku|fly|vercel|netlify|twine) ` +
		`|(?:make|just) (?:.* )?(?:install|deploy|publish|release|push)\b` +
		`|(?:npm run|yarn|pnpm) (?:.* )?(?:deploy|release)\b|(?:deploy|publish|release)\b` +
		`|(?:ssh|scp|sftp|rsync|kill|pkill|killall|crontab|mount|umount|sysctl|mysql|mariadb|psql|` +
		`mongosh|redis-cli|sendmail|mail|nc|telnet)(?: |$))`)
	// asking matches those of them that only ask.
	asking = Pattern(`^\S+ (?:\w+ )?(?:ps|images|logs|get|describe|status|list|ls|view|info|inspect|version|-l|-0)` +
		`(?: |$)|--(?:help|version|dry-run)\b`)
	// writers are the programs that change the files they name; copiers change the last one.
	writers = Set("mv rm rmdir mkdir touch chmod chown tee truncate unlink")
	copiers = Set("cp ln install")
)

// Reached returns what a command changed outside dir, the world's directory (absolute; empty when unknown), each
// effect in a few words. It names what the line itself tells: a file there, or a command whose effect lies there.
// An isolated command reached only files there, and its /tmp was its own.
func Reached(command, dir string, isolated bool) (effects []string) {
	commands, _ := Parse(command) // of a faulty line, those before the fault: a shell would run them
	base := ""                    // where a cd led
	for _, s := range commands {
		var paths, args []string
		for _, r := range s.Redirects {
			if r.Writes() {
				paths = append(paths, r.File.Text)
			}
		}
		for _, w := range s.Args() {
			if !strings.HasPrefix(w.Text, "-") {
				args = append(args, w.Text)
			}
		}
		name, line := s.Program(), s.String()
		if name != "" {
			line = name + strings.TrimPrefix(line, s.Words[0].Text)
		}
		switch {
		case name == "cd" && len(args) == 1:
			if base = path.Join(base, args[0]); path.IsAbs(args[0]) {
				base = args[0]
			}
		case writers[name]:
			paths = append(paths, args...)
		case name == "sed" && strings.Contains(line, " -i"):
			paths = append(paths, args[min(1, len(args)):]...) // the first is the script
		case copiers[name] && len(args) > 0:
			paths = append(paths, args[len(args)-1])
		case isolated, asking().MatchString(line):
		case strings.Contains(s.String(), "/bin/") && !Outside(s.Words[0].Text, dir): // of an environment inside
		case reaching().MatchString(line):
			effects = append(effects, line)
		}
		for _, p := range paths {
			if base != "" && !path.IsAbs(p) {
				p = path.Join(base, p)
			}
			home := strings.HasPrefix(p, "$HOME/") || strings.HasPrefix(p, "${HOME}/")
			lost := strings.HasPrefix(p, "/dev/") || isolated && strings.HasPrefix(p, "/tmp/")
			if (home || Outside(p, dir)) && !lost {
				effects = append(effects, "changed "+p)
			}
		}
	}
	return slices.Compact(effects)
}
