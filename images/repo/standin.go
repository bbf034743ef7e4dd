package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// standInVersion is what stand-in packages call themselves.
const standInVersion = "1.0~rehearsal1"

// StandIn makes a repository of the wanted packages without downloading them:
// index, signature and layout are those of Build, the packages hold nothing. A
// rehearsal serves it, so that nodes find what they ask for.
func StandIn(ctx context.Context, o Options) (Repo, error) {
	return ensure(ctx, o, func(_ context.Context, _, pool string) (map[string]stanza, error) {
		if err := os.MkdirAll(pool, 0o755); err != nil {
			return nil, err
		}
		all := map[string]stanza{}
		for _, p := range o.Packages {
			text := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: nobody\nDescription: stand-in of a rehearsal\n", p, standInVersion)
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
