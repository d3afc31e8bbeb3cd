package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/feature/skill"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/tool/mcp"
	"anamnesis/orchestrator/tool/spelling"
)

// addSources adds the sources of tools of a task's directory. done closes them.
func (o *opening) addSources(ctx context.Context, dir string, opts *runtime.Options) (done func(), err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil // opening the task reports it
	}
	dir, err = RealDir(dir)
	if err != nil {
		return nil, err
	}
	servers, warnings, err := o.MCPServers(dir)
	if err != nil {
		return nil, err
	}
	o.warnings = append(o.warnings, warnings...)
	for _, s := range o.Servers {
		if !slices.ContainsFunc(servers, func(p mcp.Server) bool { return s.ToolPrefix() == p.ToolPrefix() }) {
			servers = append(servers, s)
		}
	}
	trust, c := o.trust(), o.client
	read := func() []skill.Skill { return o.Skills(dir) }
	opts.Sources = append(opts.Sources, &skill.Source{Read: read, Trust: trust, Ask: c.Trust})
	if len(servers) == 0 {
		return func() {}, nil
	}
	set := mcp.Open(ctx, servers, mcp.Options{
		Dir: dir, Empty: o.Home.Empty(), Getenv: o.getenv, Program: o.o.Version, Logins: o.Home.Logins(),
		FirstWait: o.ToolsWait, Trust: trust, Ask: c.Trust, Note: c.note,
	})
	opts.Sources = append(opts.Sources, set)
	return set.Close, nil
}

// Skills returns the skills and slash commands of a directory, also those that nobody has approved.
func (s *Service) Skills(dir string) []skill.Skill {
	if real, err := RealDir(dir); err == nil { // otherwise opening a task reports it
		dir = real
	}
	return skill.Read(s.Home.Config, s.Home.User, agent.ProjectDirs(dir))
}

// expand returns a request in which a slash command of the user or of the project is replaced by its
// text. Other requests stay as they are.
func (s *Service) expand(ctx context.Context, dir, text string, ask func(ctx context.Context, question string) bool) (
	string, error) {
	text, err := s.fromServers(ctx, dir, text)
	if err != nil || !strings.HasPrefix(text, "/") {
		return text, err
	}
	k, args := skill.Typed(s.Skills(dir), text)
	if k == nil {
		return text, s.checkCommand(dir, text)
	}
	_, waiting, err := skill.Approved(s.trust(), []skill.Skill{*k})
	if err == nil && len(waiting) > 0 {
		if ask == nil || !ask(ctx, skill.Question(waiting)) {
			err = fmt.Errorf("/%s: the project brings it, and %w", k.Name, ErrNotApproved)
			return "", remedy.With(err, remedy.ApproveSkills, "")
		}
		err = skill.Approve(s.trust(), waiting)
	}
	if err != nil {
		return "", err
	}
	out := quote.Squash(text) + "\n\n" + k.Expand(args)
	if k.Path != "" {
		return out, nil
	}
	if dir, err = RealDir(dir); err != nil {
		return "", err
	}
	repo, err := s.Facts(dir) // of the built-in command
	if err != nil {
		return "", err
	}
	for _, f := range repo.Facts() {
		out += "\n- From earlier tasks: " + f.String()
	}
	return out, nil
}

// checkCommand refuses a text whose first word, such as /reviw, is neither a command, nor a prompt of a server, nor a
// path.
func (s *Service) checkCommand(dir, text string) error {
	word := strings.Fields(text)[0]
	if _, err := os.Lstat(word); err == nil || strings.ContainsAny(word[1:], "/:") {
		return nil
	}
	var names []string
	for _, k := range s.Skills(dir) {
		names = append(names, "/"+k.Name)
	}
	near := spelling.Nearest(word, names)
	if near != "" {
		near = "; did you mean " + near + "?"
	}
	return Usagef("%s is not a command%s; a space before it sends it as text", word, near)
}

// MCPServers returns the servers that are configured for a directory: the user's own, and
// those of the project with other names. An unreadable file of a project only omits its
// servers; the warnings report it.
func (s *Service) MCPServers(dir string) (servers []mcp.Server, warnings []string, err error) {
	if servers, err = mcp.Load(s.Home.MCPServers(), ""); err != nil {
		return nil, nil, Usagef("%v", err)
	}
	project, err := mcp.Load(filepath.Join(dir, mcp.ProjectFile), dir)
	if err != nil {
		warnings = append(warnings, fmt.Sprintf("warning: %v; its servers are not used", err))
	}
	for _, p := range project {
		if slices.ContainsFunc(servers, func(s mcp.Server) bool { return s.ToolPrefix() == p.ToolPrefix() }) {
			warnings = append(warnings, fmt.Sprintf("warning: the MCP server %s of %s is not used: your own "+
				"configuration has one of that name", p.Name, mcp.ProjectFile))
			continue
		}
		servers = append(servers, p)
	}
	return servers, warnings, nil
}
