package quarantine

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
)

// inertKeys are the settings of git that neither run a program nor lead git to other files.
// "*" matches a subsection. Every other setting counts as dangerous.
const inertKeys = `
core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase core.precomposeunicode
core.symlinks core.autocrlf core.eol core.safecrlf core.sharedrepository core.longpaths core.abbrev core.compression
core.loosecompression core.bigfilethreshold core.quotepath core.untrackedcache core.preloadindex core.commitgraph
core.multipackindex core.trustctime core.checkstat core.sparsecheckout core.sparsecheckoutcone core.whitespace
core.commentchar core.worktree
extensions.objectformat extensions.compatobjectformat extensions.refstorage extensions.worktreeconfig
extensions.partialclone extensions.noop extensions.preciousobjects extensions.relativeworktrees
user.name user.email user.useconfigonly author.name author.email committer.name committer.email
remote.pushdefault remote.*.url remote.*.pushurl remote.*.fetch remote.*.push remote.*.mirror remote.*.prune
remote.*.prunetags remote.*.tagopt remote.*.skipdefaultupdate remote.*.skipfetchall remote.*.promisor
remote.*.partialclonefilter remote.*.followremotehead
branch.autosetupmerge branch.autosetuprebase branch.sort branch.*.remote branch.*.merge branch.*.rebase
branch.*.pushremote branch.*.description branch.*.vscode-merge-base branch.*.gh-merge-base
init.defaultbranch pull.rebase pull.ff push.default push.autosetupremote push.followtags push.recursesubmodules
merge.ff merge.conflictstyle merge.renames merge.log rebase.autosquash rebase.autostash rebase.updaterefs rebase.stat
fetch.prune fetch.prunetags fetch.parallel fetch.recursesubmodules fetch.writecommitgraph
rerere.enabled rerere.autoupdate commit.gpgsign commit.verbose commit.status commit.cleanup tag.gpgsign tag.sort
status.showuntrackedfiles status.branch status.short log.date log.decorate log.abbrevcommit
diff.renames diff.algorithm diff.mnemonicprefix diff.noprefix diff.submodule diff.colormoved
gc.auto gc.autodetach gc.prunepackrefs maintenance.auto maintenance.strategy index.version index.threads index.sparse
pack.threads pack.windowmemory feature.manyfiles feature.experimental receive.denycurrentbranch
receive.denynonfastforwards
submodule.active submodule.recurse submodule.fetchjobs submodule.*.url submodule.*.active submodule.*.branch
submodule.*.ignore submodule.*.fetchrecursesubmodules submodule.*.update submodule.alternatelocation
submodule.alternateerrorstrategy lfs.repositoryformatversion`

// inertSections are sections whose settings are all inert if they have no subsection.
const inertSections = "advice color column"

var (
	configSection = shell.Pattern(`^\s*\[([A-Za-z0-9-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\]\s*$`)
	configSetting = shell.Pattern(`^\s*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?$`)
	configComment = shell.Pattern(`^\s*(?:[#;].*)?$`)
	// gitTransport begins an address whose transport is a program.
	gitTransport = shell.Pattern(`^[A-Za-z0-9.+_-]*::`)
)

// inert splits a configuration of git into the lines that stay and the settings that do not.
// It understands what git itself writes: a section or a setting a line. A line that it cannot
// parse, or that may continue such a line, does not stay. A trusted line stays in its section,
// as long as it leads where it led.
func (p configPlace) inert(text string) (kept string, dropped []string) {
	var out strings.Builder
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == '\uFEFF' }
	section, sub, readable := "", "", true
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		odd := strings.HasSuffix(bare, `\`) || strings.ContainsFunc(bare, control)
		if m := configSection().FindStringSubmatch(bare); m != nil && !odd {
			section, sub, readable = strings.ToLower(m[1]), m[2], m[2] != "" || !strings.Contains(bare, `""`)
			out.WriteString(line)
			continue
		}
		if configComment().MatchString(bare) && !odd {
			out.WriteString(line)
			continue
		}
		m := configSetting().FindStringSubmatch(bare)
		switch {
		case m == nil || odd || strings.Count(bare, `"`)%2 != 0:
			if strings.HasPrefix(strings.TrimSpace(bare), "[") {
				readable = false // the section of the following settings is unknown
			}
			dropped = append(dropped, quote.ClipMarked(quote.Squash(bare), maxNamedRunes))
		case readable && (p.trusts(section, sub, m, bare) || p.inertSetting(section, sub, m)):
			out.WriteString(line)
		default:
			name := section + "." + m[1]
			if sub != "" {
				name = section + "." + sub + "." + m[1]
			}
			dropped = append(dropped, quote.ClipMarked(quote.Squash(name), maxNamedRunes))
		}
	}
	return out.String(), dropped
}

// maxNamedRunes bounds what is quoted of a line of a configuration.
const maxNamedRunes = 60

// freeText are the inert settings with a free text, which git writes in quotes and with
// escapes.
const freeText = "user.name user.email author.name author.email committer.name committer.email " +
	"branch.*.description core.commentchar"

func (p configPlace) inertSetting(section, sub string, m []string) bool {
	name, value := settingName(section, sub, m[1]), strings.TrimSpace(m[2])
	if shell.InList(freeText, name) {
		return true
	}
	// Quotes, escapes and comments make the value differ from its text.
	if strings.ContainsAny(value, "\"\\#;") || strings.HasPrefix(value, "!") || gitTransport().MatchString(value) {
		return false
	}
	switch to := leadsByConfig(name, value, p.dir); {
	case name == "core.worktree":
		return to != "" && Within(to, p.world) && isDir(to)
	case p.inOwn(to, value):
		return false // with hooks that are not examined
	case name == "submodule.*.update":
		return slices.Contains([]string{"checkout", "rebase", "merge", "none"}, value)
	}
	return shell.InList(inertKeys, name) || sub == "" && shell.InList(inertSections, section)
}

// settingName returns a setting's name as the lists here have it: its section, a "*" for a subsection, and its key.
func settingName(section, sub, key string) string {
	if sub != "" {
		section += ".*"
	}
	return section + "." + strings.ToLower(key)
}

func configLines(text string) map[string]bool {
	lines := map[string]bool{}
	eachSetting(text, func(section, sub string, m []string) { lines[configLine(section, sub, m[0])] = true })
	return lines
}

// eachSetting visits the settings of a configuration, each as configSetting matches its line.
func eachSetting(text string, visit func(section, sub string, m []string)) {
	section, sub := "", ""
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		if m := configSection().FindStringSubmatch(bare); m != nil {
			section, sub = strings.ToLower(m[1]), m[2]
		} else if m := configSetting().FindStringSubmatch(bare); m != nil {
			visit(section, sub, m)
		}
	}
}

func configLine(section, sub, line string) string {
	return section + "\x00" + sub + "\x00" + strings.TrimSpace(line)
}
