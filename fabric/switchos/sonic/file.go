// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
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
		files = append(files, File{hostnameOf(s.Switch) + ".json", s.Render().JSON()})
	}
	return files
}

// Which returns the switch of the site that a CONFIG_DB is of: by its host name,
// which is the switch's name or what Render writes, else its label. Two switches that
// one host name may mean are refused.
func Which(list []*Switch, have Config) (*Switch, error) {
	name := have["DEVICE_METADATA"]["localhost"]["hostname"]
	for _, is := range []func(*Switch) bool{
		func(s *Switch) bool {
			return strings.EqualFold(name, hostnameOf(s.Switch)) || strings.EqualFold(name, s.Switch.Name)
		},
		func(s *Switch) bool { return s.Switch.Label != "" && strings.EqualFold(name, s.Switch.Label) },
	} {
		var found *Switch
		for _, s := range list {
			if !is(s) {
				continue
			}
			if found != nil {
				return nil, errkind.New(errkind.Conflict, "%s and %s are both meant by the host name %q", found.Switch.Name, s.Switch.Name, name).
					Do("Give the switch a host name of its own: the one that ironrail writes, from a name in the site that no other switch has.")
			}
			found = s
		}
		if found != nil {
			return found, nil
		}
	}
	return nil, errkind.New(errkind.NotFound, "no SONiC switch of the site has the host name %q", name).
		Do("Look whether the dump is of this site, and set the switch's host name to its name in the site.")
}

// Hostname is the host name that Render gives the switch.
func (s *Switch) Hostname() string { return hostnameOf(s.Switch) }
