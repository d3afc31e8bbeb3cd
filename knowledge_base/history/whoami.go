package history

import (
	"cmp"
	"os"
	"os/user"
	"path/filepath"

	"github.com/go-git/go-git/v5/config"
)

// Whoami returns the user at this machine as git would name them for a
// repository in dir: by its settings, else by the user's own, else by the
// login name.
func Whoami(dir string) Person {
	var p Person
	if f, err := os.Open(filepath.Join(dir, ".git", "config")); err == nil {
		if c, err := config.ReadConfig(f); err == nil {
			p = Person{c.User.Name, c.User.Email}
		}
		f.Close()
	}
	if c, err := config.LoadConfig(config.GlobalScope); err == nil {
		p.Name, p.Email = cmp.Or(p.Name, c.User.Name), cmp.Or(p.Email, c.User.Email)
	}
	login := "person"
	if u, err := user.Current(); err == nil {
		login = cmp.Or(u.Username, login)
		p.Name = cmp.Or(p.Name, u.Name)
	}
	return Person{cmp.Or(p.Name, login), cmp.Or(p.Email, login+"@localhost")}
}
