package sonic

import (
	"strings"

	"github.com/ironrail/ironrail/provision/errkind"
)

// File is what one switch is given: a part of CONFIG_DB for `config load`.
type File struct {
	Name    string
	Content []byte
}

// Files renders every switch, one file each, in the order of the list.
func Files(list []*Switch) []File {
	files := make([]File, 0, len(list))
	for _, s := range list {
		files = append(files, File{hostname(s.Switch) + ".json", s.Render().JSON()})
	}
	return files
}

// Which returns the switch of the site that a CONFIG_DB is of: by its host name,
// which is the switch's name, its label, or what Render writes.
func Which(list []*Switch, have Config) (*Switch, error) {
	name := have["DEVICE_METADATA"]["localhost"]["hostname"]
	var found *Switch
	for _, s := range list {
		if strings.EqualFold(name, hostname(s.Switch)) || strings.EqualFold(name, s.Switch.Name) {
			return s, nil
		}
		if s.Switch.Label != "" && strings.EqualFold(name, s.Switch.Label) {
			if found != nil {
				return nil, errkind.New(errkind.Mismatch, "%s and %s both have the label of the host name %q", found.Switch.Name, s.Switch.Name, name).
					Do("Give the switch the host name that ironrail writes.")
			}
			found = s
		}
	}
	if found == nil {
		return nil, errkind.New(errkind.Mismatch, "no SONiC switch of the site has the host name %q", name).
			Do("Look whether the dump is of this site, and set the switch's host name to its name in the site.")
	}
	return found, nil
}

// Hostname is the host name that Render gives the switch.
func (s *Switch) Hostname() string { return hostname(s.Switch) }
