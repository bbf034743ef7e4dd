// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// standInVersion is what stand-in packages call themselves.
const standInVersion = "1.0~rehearsal1"

// StandIn makes a repository of the wanted packages without downloading them:
// index, signature and layout are those of Build, the packages hold nothing. Those
// that a pin names have its version. A rehearsal serves it, so that nodes find what
// they ask for.
func StandIn(ctx context.Context, o Options) (Repo, error) {
	return ensureRepo(ctx, o, func(_ context.Context, _, pool string) (map[string]stanza, error) {
		if err := os.MkdirAll(pool, 0o755); err != nil {
			return nil, err
		}
		all := map[string]stanza{}
		for _, p := range o.Packages {
			text := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: nobody\nDescription: stand-in of a rehearsal\n", p, o.standInVersion(p), o.Image.arch())
			s, err := parseStanza([]byte(text))
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(pool, s.fileName()), []byte("stand-in of "+p+"\n"), 0o644); err != nil {
				return nil, err
			}
			all[s.fileName()] = s
		}
		return all, nil
	})
}

// standInVersion is the version of one stand-in: that of the pin that names it.
func (o Options) standInVersion(name string) string {
	for _, p := range o.Pins {
		for _, glob := range p.Packages {
			if ok, err := path.Match(glob, name); err == nil && ok {
				if v, ok := strings.CutPrefix(p.Version, "*"); ok {
					return "1" + strings.TrimRight(v, "*-.")
				}
				return strings.TrimRight(p.Version, "*-.") + "-1"
			}
		}
	}
	return standInVersion
}
